#include "base/secret.h"

#include <openssl/crypto.h>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/sha256.h"

namespace flotilla {
namespace {

struct Compared {
  std::string a, b;
};
std::vector<Compared> g_compared;

int look_on(const void* a, const void* b, std::size_t size) {
  g_compared.push_back({.a = std::string(static_cast<const char*>(a), size),
                        .b = std::string(static_cast<const char*>(b), size)});
  return CRYPTO_memcmp(a, b, size);
}

std::string hash(std::string_view text) {
  const std::string_view parts[] = {text};
  return sha256(parts);
}

constexpr const char* kToken = "correct-horse-battery";

TEST(SameSecret, is_so_for_the_same_bytes_alone) {
  const std::string token = kToken;
  EXPECT_TRUE(same_secret(token, token));
  EXPECT_TRUE(same_secret("", ""));
  for (std::size_t at = 0; at < token.size(); ++at) {
    std::string other = token;
    other[at] ^= 1;
    EXPECT_FALSE(same_secret(token, other)) << at;
    EXPECT_FALSE(same_secret(token, token.substr(0, at))) << at;
  }
  EXPECT_FALSE(same_secret(token, token + token)) << "once more is not the same";
  EXPECT_FALSE(same_secret(token, token + '\0'));
  EXPECT_FALSE(same_secret("", token));
}

// Wherever they differ and however long they are, the same is done: one comparison of all bytes of
// two hashes, by the library's function whose time does not depend on them.
TEST(SameSecret, compares_whole_hashes_whatever_the_secrets_are) {
  const std::string token = kToken;
  for (const std::string& other : {token, "x" + token.substr(1), token.substr(0, 20) + "x",
                                   std::string(), std::string("c"), std::string(100'000, 'c')}) {
    g_compared.clear();
    EXPECT_EQ(same_secret(other, token, &look_on), other == token);
    ASSERT_EQ(g_compared.size(), 1U);
    EXPECT_EQ(g_compared[0].a, hash(other));
    EXPECT_EQ(g_compared[0].b, hash(token));
  }
}

}  // namespace
}  // namespace flotilla
