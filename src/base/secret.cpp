#include "base/secret.h"

#include <openssl/crypto.h>

#include "base/sha256.h"

namespace flotilla {

bool same_secret(std::string_view a, std::string_view b, CompareBytes compare) {
  const std::string_view one[] = {a};
  const std::string_view other[] = {b};
  const std::string hash_a = sha256(one);
  const std::string hash_b = sha256(other);
  if (compare == nullptr) compare = &CRYPTO_memcmp;
  return compare(hash_a.data(), hash_b.data(), hash_a.size()) == 0;
}

}  // namespace flotilla
