#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace flotilla {

// The SHA-256 of what is added, piece by piece.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void add(std::string_view piece);
  // 32 bytes, not hex. The last call.
  std::string finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// The SHA-256 of the parts, one after the other: 32 bytes, not hex.
std::string sha256(std::span<const std::string_view> parts);

// HMAC-SHA-256 of the parts, one after the other: 32 bytes, not hex.
std::string hmac_sha256(std::string_view key, std::span<const std::string_view> parts);

std::string hex_text(std::string_view bytes);

}  // namespace flotilla
