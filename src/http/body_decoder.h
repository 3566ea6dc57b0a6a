#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace flotilla::http {

// Cuts the body of one message out of the bytes of a connection, whatever the borders of the reads.
class BodyDecoder {
 public:
  enum class State { More, Done, Malformed };

  static BodyDecoder length(std::uint64_t bytes);
  static BodyDecoder chunked();
  static BodyDecoder until_close();  // the caller says end()

  // Takes bytes of `in`, appends the body's to `out` (at most `out_max` of them) and says how many
  // it took: all of them unless the body ended, is malformed, or `out_max` was reached.
  std::size_t feed(std::string_view in, std::string& out, std::size_t out_max);
  State state() const { return state_; }
  bool ends_with_connection() const { return kind_ == Kind::UntilClose; }
  void end() { state_ = State::Done; }

 private:
  enum class Kind { Length, Chunked, UntilClose };
  enum class Part { Size, Extension, SizeLf, Data, DataCr, DataLf, Trailer, TrailerLf, EndLf };

  explicit BodyDecoder(Kind kind) : kind_(kind) {}
  void feed_framing(char c);
  void count_overhead();

  Kind kind_;
  State state_ = State::More;
  Part part_ = Part::Size;
  std::uint64_t left_ = 0;      // of the body, or of the chunk
  int digits_ = 0;              // of the chunk's size so far
  bool line_empty_ = true;      // of the trailer so far
  std::uint32_t overhead_ = 0;  // bytes of extensions and trailers so far
};

}  // namespace flotilla::http
