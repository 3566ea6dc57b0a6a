#include "base/sha256.h"

#include <openssl/evp.h>

#include "base/check.h"

namespace flotilla {

struct Sha256::Context {
  Context() : digest(EVP_MD_CTX_new()) {
    CHECK(digest != nullptr && EVP_DigestInit_ex(digest, EVP_sha256(), nullptr) == 1);
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { EVP_MD_CTX_free(digest); }
  EVP_MD_CTX* digest;
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {}
Sha256::~Sha256() = default;

void Sha256::add(std::string_view piece) {
  CHECK(EVP_DigestUpdate(context_->digest, piece.data(), piece.size()) == 1);
}

std::string Sha256::finish() {
  std::string out(32, '\0');
  unsigned size = 0;
  CHECK(EVP_DigestFinal_ex(context_->digest, reinterpret_cast<unsigned char*>(out.data()), &size) ==
        1);
  return out;
}

std::string sha256(std::span<const std::string_view> parts) {
  Sha256 hash;
  for (const std::string_view part : parts) hash.add(part);
  return hash.finish();
}

std::string hex_text(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (const char byte : bytes) {
    out += digits[static_cast<unsigned char>(byte) >> 4];
    out += digits[static_cast<unsigned char>(byte) & 15];
  }
  return out;
}

}  // namespace flotilla
