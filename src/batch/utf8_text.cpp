#include "batch/utf8_text.h"

namespace flotilla::batch {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

}  // namespace

void Utf8Text::add(std::string_view bytes, std::string& out) {
  for (const char c : bytes) add_byte(static_cast<std::uint8_t>(c), out);
}

void Utf8Text::finish(std::string& out) {
  if (missing_ > 0) out += kReplacement;
  partial_.clear();
  missing_ = 0;
}

void Utf8Text::add_byte(std::uint8_t byte, std::string& out) {
  if (missing_ > 0) {
    if (byte >= lowest_ && byte <= highest_) {
      partial_ += static_cast<char>(byte);
      lowest_ = 0x80;
      highest_ = 0xBF;
      if (--missing_ == 0) {
        out += partial_;
        partial_.clear();
      }
      return;
    }
    finish(out);  // the byte itself may begin a character
  }
  lowest_ = 0x80;
  highest_ = 0xBF;
  if (byte < 0x80) {
    out += static_cast<char>(byte);
    return;
  }
  if (byte >= 0xC2 && byte <= 0xDF) {
    missing_ = 1;
  } else if (byte >= 0xE0 && byte <= 0xEF) {
    if (byte == 0xE0) lowest_ = 0xA0;   // shorter forms exist below
    if (byte == 0xED) highest_ = 0x9F;  // surrogates above
    missing_ = 2;
  } else if (byte >= 0xF0 && byte <= 0xF4) {
    if (byte == 0xF0) lowest_ = 0x90;
    if (byte == 0xF4) highest_ = 0x8F;  // beyond U+10FFFF
    missing_ = 3;
  } else {
    out += kReplacement;
    return;
  }
  partial_ = static_cast<char>(byte);
}

}  // namespace flotilla::batch
