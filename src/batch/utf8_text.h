#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace flotilla::batch {

// Bytes in pieces of any size -> valid UTF-8, whole characters only. Invalid bytes become U+FFFD,
// one for each maximal subpart of a character (the WHATWG decoder's rule), as soon as no further
// byte can save them. Holds back at most 3 bytes.
class Utf8Text {
 public:
  // Appends to `out` what is certain.
  void add(std::string_view bytes, std::string& out);
  // No more bytes come: an unfinished character becomes U+FFFD.
  void finish(std::string& out);
  // The bytes so far end inside a character.
  bool inside() const { return missing_ > 0; }

 private:
  void add_byte(std::uint8_t byte, std::string& out);

  std::string partial_;         // the unfinished character's bytes
  int missing_ = 0;             // continuation bytes that it needs still
  std::uint8_t lowest_ = 0x80;  // range of the next one
  std::uint8_t highest_ = 0xBF;
};

}  // namespace flotilla::batch
