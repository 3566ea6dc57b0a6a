#include "http/body_decoder.h"

#include <algorithm>

namespace flotilla::http {
namespace {

// 15 hex digits: the sum of two sizes cannot overflow.
constexpr int kSizeDigitsMax = 15;
// Extensions and trailers carry nothing we use.
constexpr std::uint32_t kOverheadMax = 16 << 10;

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

BodyDecoder BodyDecoder::length(std::uint64_t bytes) {
  BodyDecoder decoder(Kind::Length);
  decoder.left_ = bytes;
  if (bytes == 0) decoder.state_ = State::Done;
  return decoder;
}

BodyDecoder BodyDecoder::chunked() { return BodyDecoder(Kind::Chunked); }

BodyDecoder BodyDecoder::until_close() { return BodyDecoder(Kind::UntilClose); }

std::size_t BodyDecoder::feed(std::string_view in, std::string& out, std::size_t out_max) {
  std::size_t taken = 0;
  while (taken < in.size() && state_ == State::More) {
    if (kind_ == Kind::Chunked && part_ != Part::Data) {
      feed_framing(in[taken++]);
      continue;
    }
    std::size_t count = std::min(in.size() - taken, out_max);
    if (kind_ != Kind::UntilClose)
      count = static_cast<std::size_t>(std::min<std::uint64_t>(count, left_));
    if (count == 0) break;
    out.append(in, taken, count);
    taken += count;
    out_max -= count;
    if (kind_ == Kind::UntilClose) continue;
    left_ -= count;
    if (left_ > 0) continue;
    if (kind_ == Kind::Length) {
      state_ = State::Done;
    } else {
      part_ = Part::DataCr;
    }
  }
  return taken;
}

// Line ends are CRLF and nothing else: a bare LF is where two readers of a connection may disagree.
void BodyDecoder::feed_framing(char c) {
  const auto expect = [&](char wanted, Part next) {
    if (c == wanted) {
      part_ = next;
    } else {
      state_ = State::Malformed;
    }
  };
  switch (part_) {
    case Part::Size:
      if (const int value = hex_value(c); value >= 0 && digits_ < kSizeDigitsMax) {
        left_ = left_ * 16 + static_cast<std::uint64_t>(value);
        ++digits_;
      } else if (digits_ == 0) {
        state_ = State::Malformed;
      } else if (c == ';') {
        part_ = Part::Extension;
      } else {
        expect('\r', Part::SizeLf);
      }
      return;
    case Part::Extension:
      count_overhead();
      if (c == '\r') {
        part_ = Part::SizeLf;
      } else if (c == '\n') {
        state_ = State::Malformed;
      }
      return;
    case Part::SizeLf:
      expect('\n', left_ > 0 ? Part::Data : Part::Trailer);
      digits_ = 0;
      return;
    case Part::DataCr: expect('\r', Part::DataLf); return;
    case Part::DataLf: expect('\n', Part::Size); return;
    case Part::Trailer:
      count_overhead();
      if (c == '\r') {
        part_ = line_empty_ ? Part::EndLf : Part::TrailerLf;
      } else if (c == '\n') {
        state_ = State::Malformed;
      } else {
        line_empty_ = false;
      }
      return;
    case Part::TrailerLf:
      expect('\n', Part::Trailer);
      line_empty_ = true;
      return;
    case Part::EndLf:
      expect('\n', Part::EndLf);
      if (state_ == State::More) state_ = State::Done;
      return;
    case Part::Data: return;
  }
}

void BodyDecoder::count_overhead() {
  if (++overhead_ > kOverheadMax) state_ = State::Malformed;
}

}  // namespace flotilla::http
