#pragma once

#include <cstddef>
#include <string_view>

namespace flotilla {

// Whether two secrets are the same, in a time that says nothing of where they differ or how long
// the other is: all 32 bytes of their SHA-256 are compared, by OpenSSL's CRYPTO_memcmp. The one
// place where secrets are compared: tools/tidy.py bans == and the like on them. (Keys and log-ins
// are found by their hash; that lookup needs no comparison of secrets.)
//
// `compare`: as CRYPTO_memcmp, which it is unless a test looks on.
using CompareBytes = int (*)(const void*, const void*, std::size_t);
bool same_secret(std::string_view a, std::string_view b, CompareBytes compare = nullptr);

}  // namespace flotilla
