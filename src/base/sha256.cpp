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

std::string hmac_sha256(std::string_view key, std::span<const std::string_view> parts) {
  const std::unique_ptr<EVP_MAC, decltype(&EVP_MAC_free)> kind(
      EVP_MAC_fetch(nullptr, "HMAC", nullptr), &EVP_MAC_free);
  const std::unique_ptr<EVP_MAC_CTX, decltype(&EVP_MAC_CTX_free)> mac(EVP_MAC_CTX_new(kind.get()),
                                                                      &EVP_MAC_CTX_free);
  char digest[] = "SHA256";
  const OSSL_PARAM with[] = {OSSL_PARAM_construct_utf8_string("digest", digest, 0),
                             OSSL_PARAM_construct_end()};
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
  };
  CHECK(EVP_MAC_init(mac.get(), bytes(key), key.size(), with) == 1);
  for (const std::string_view part : parts) {
    CHECK(EVP_MAC_update(mac.get(), bytes(part), part.size()) == 1);
  }
  std::string out(32, '\0');
  std::size_t size = 0;
  CHECK(EVP_MAC_final(mac.get(), reinterpret_cast<unsigned char*>(out.data()), &size, out.size()) ==
        1);
  return out;
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
