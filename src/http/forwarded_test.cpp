#include "http/forwarded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace flotilla::http {
namespace {

using testing::HasSubstr;

std::vector<AddressRange> ranges(std::initializer_list<const char*> texts) {
  std::vector<AddressRange> out;
  for (const char* text : texts) out.push_back(*AddressRange::parse(text));
  return out;
}

const std::vector<AddressRange>& trusted() {
  static const auto those = ranges({"127.0.0.1", "10.0.0.0/8", "::1", "2001:db8:1::/48"});
  return those;
}

Remote from(const char* peer, Headers headers) {
  Remote remote{.address = peer};
  return find_remote(remote, headers, trusted());
}

std::string client(const char* peer, Headers headers) { return from(peer, headers).address; }
std::string x_for(const char* list) { return client("127.0.0.1", {{"X-Forwarded-For", list}}); }
std::string forwarded(const char* list) { return client("127.0.0.1", {{"Forwarded", list}}); }

TEST(AddressRange, holds_what_begins_like_it) {
  const auto contains = [](const char* range, const char* address) {
    return AddressRange::parse(range)->contains(address);
  };
  EXPECT_TRUE(contains("10.0.0.0/8", "10.255.0.1"));
  EXPECT_FALSE(contains("10.0.0.0/8", "11.0.0.0"));
  EXPECT_TRUE(contains("192.0.2.128/25", "192.0.2.129"));
  EXPECT_FALSE(contains("192.0.2.128/25", "192.0.2.127"));
  EXPECT_TRUE(contains("192.0.2.1", "192.0.2.1"));
  EXPECT_FALSE(contains("192.0.2.1", "192.0.2.2"));
  EXPECT_TRUE(contains("0.0.0.0/0", "203.0.113.9"));
  EXPECT_FALSE(contains("0.0.0.0/0", "2001:db8::1"));
  EXPECT_FALSE(contains("::/0", "203.0.113.9"));
  EXPECT_TRUE(contains("2001:db8::/33", "2001:db8:7fff::1"));
  EXPECT_FALSE(contains("2001:db8::/33", "2001:db8:8000::1"));
  EXPECT_TRUE(contains("10.0.0.0/8", "::ffff:10.1.2.3")) << "IPv4 within IPv6 is IPv4";
  for (const char* none : {"", "unix", "10.0.0.1 ", "10.0.0.256", "10.1", "0x0a.0.0.1"}) {
    EXPECT_FALSE(contains("10.0.0.0/8", none)) << none;
  }
}

TEST(AddressRange, refuses_what_is_none_and_says_what_would_do) {
  for (const char* bad : {"", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8x",
                          "10.0.0.0/08 ", "10.0.0.1/8", "2001:db8::/129", "2001:db8::1/64",
                          "localhost", "fe80::1%eth0", "10.0.0.0/8/8", "10.0.0.0/99999999999"}) {
    const auto range = AddressRange::parse(bad);
    ASSERT_FALSE(range) << bad;
    EXPECT_THAT(range.error().message, HasSubstr("write an address or a range such as 10.0.0.0/8"));
    EXPECT_THAT(range.error().message, HasSubstr("'" + std::string(bad) + "'"));
  }
}

TEST(Forwarded, is_ignored_from_strangers) {
  const Headers claims{{"X-Forwarded-For", "198.51.100.7"},
                       {"X-Forwarded-Proto", "https"},
                       {"Forwarded", "for=198.51.100.7;proto=https"}};
  const Remote remote = from("203.0.113.1", claims);
  EXPECT_EQ(remote.address, "203.0.113.1");
  EXPECT_FALSE(remote.by_tls || remote.forwarded);
  EXPECT_EQ(client("unix", claims), "unix");
}

TEST(Forwarded, the_rightmost_untrusted_address_is_the_client) {
  EXPECT_EQ(x_for("198.51.100.7"), "198.51.100.7");
  EXPECT_EQ(x_for("1.1.1.1, 198.51.100.7"), "198.51.100.7") << "the left one is hearsay";
  EXPECT_EQ(x_for("1.1.1.1,198.51.100.7 , 10.0.0.3,\t2001:db8:1::9"), "198.51.100.7");
  EXPECT_EQ(x_for("10.0.0.5, 10.0.0.3"), "10.0.0.5") << "a client among the proxies";
  const Headers split{{"X-Forwarded-For", "1.1.1.1"},
                      {"x-forwarded-for", "198.51.100.7"},
                      {"X-Forwarded-For", "10.0.0.3"}};
  EXPECT_EQ(client("127.0.0.1", split), "198.51.100.7");
}

TEST(Forwarded, addresses_come_in_many_dresses) {
  EXPECT_EQ(x_for("198.51.100.7:4711"), "198.51.100.7");
  EXPECT_EQ(x_for("2001:db8:2::7"), "2001:db8:2::7");
  EXPECT_EQ(x_for("2001:DB8:2:0:0::7"), "2001:db8:2::7");
  EXPECT_EQ(x_for("[2001:db8:2::7]"), "2001:db8:2::7");
  EXPECT_EQ(x_for("[2001:db8:2::7]:4711"), "2001:db8:2::7");
  EXPECT_EQ(x_for("::ffff:198.51.100.7"), "198.51.100.7");
  EXPECT_EQ(x_for("198.51.100.7, ::ffff:10.0.0.1"), "198.51.100.7");
}

TEST(Forwarded, what_cannot_be_read_ends_the_walk_at_the_last_trusted_one) {
  for (const char* bad : {"",
                          " ",
                          ",",
                          "unknown",
                          "_hidden",
                          "198.51.100.7:",
                          "198.51.100.7:x",
                          "[2001:db8::1",
                          "[198.51.100.7]",
                          "[2001:db8:2::7]x",
                          "[2001:db8:2::7]:",
                          "fe80::1%eth0",
                          "198.51.100.7 1.1.1.1",
                          "198.51.100.777",
                          "3325256704",
                          "198.51.100.7;",
                          "\"198.51.100.7\"",
                          "localhost",
                          "198.51.100.7:999999",
                          "198.51.100.7,",
                          "evil, "}) {
    EXPECT_EQ(x_for(bad), "127.0.0.1") << bad;
    EXPECT_EQ(x_for((std::string(bad) + ", 10.0.0.3").c_str()), "10.0.0.3") << bad;
  }
  EXPECT_EQ(x_for(std::string(60'000, ',').c_str()), "127.0.0.1");
  EXPECT_EQ(x_for(("198.51.100.7" + std::string(60'000, ' ')).c_str()), "198.51.100.7");
}

TEST(Forwarded, the_standard_header_is_read_like_the_other) {
  EXPECT_EQ(forwarded("for=198.51.100.7"), "198.51.100.7");
  EXPECT_EQ(forwarded("For=198.51.100.7;proto=https;by=10.0.0.1"), "198.51.100.7");
  EXPECT_EQ(forwarded("for=1.1.1.1, for=198.51.100.7 ; host=a,for=10.0.0.3"), "198.51.100.7");
  EXPECT_EQ(forwarded("for=\"[2001:db8:2::7]:4711\""), "2001:db8:2::7");
  EXPECT_EQ(forwarded("for=\"198.51.100.7:80\";ext=\"a,b;for=1.1.1.1\""), "198.51.100.7");
  EXPECT_EQ(forwarded("by=10.0.0.1, for=10.0.0.3"), "10.0.0.3");
  EXPECT_TRUE(from("127.0.0.1", {{"Forwarded", "for=198.51.100.7;proto=HTTPS"}}).by_tls);
  EXPECT_FALSE(from("127.0.0.1", {{"Forwarded",
                                   "for=1.1.1.1;proto=https, for=198.51.100.7;"
                                   "proto=http"}})
                   .by_tls);
}

TEST(Forwarded, a_malformed_standard_header_says_nothing) {
  for (const char* bad :
       {"", "for", "for=", "198.51.100.7", "for=\"198.51.100.7", "for=\"198.51.100.7\\\"\"",
        "for=\"", "for= \"", "for=_hidden", "for=unknown", "for=198.51.100.7,", ";for=198.51.100.7",
        "for=\"198.51.100.7\"x", "for=198.51.100.7;;proto=https", "=",
        "=,=", "for=198.51.100.7;proto", "for=1.1.1.1;for"}) {
    EXPECT_EQ(forwarded(bad), "127.0.0.1") << bad;
  }
}

TEST(Forwarded, two_headers_that_disagree_are_not_believed) {
  const Remote differ = from("127.0.0.1", {{"X-Forwarded-For", "198.51.100.7"},
                                           {"X-Forwarded-Proto", "https"},
                                           {"Forwarded", "for=1.1.1.1;proto=https"}});
  EXPECT_EQ(differ.address, "127.0.0.1");
  EXPECT_FALSE(differ.by_tls);
  const Remote agree = from("127.0.0.1", {{"X-Forwarded-For", "198.51.100.7"},
                                          {"X-Forwarded-Proto", "https"},
                                          {"Forwarded", "for=198.51.100.7;proto=https"}});
  EXPECT_EQ(agree.address, "198.51.100.7");
  EXPECT_TRUE(agree.by_tls && agree.forwarded);
}

TEST(Forwarded, the_scheme_is_what_the_nearest_proxy_says) {
  const auto tls = [](const char* proto) {
    return from("127.0.0.1", {{"X-Forwarded-For", "198.51.100.7"}, {"X-Forwarded-Proto", proto}})
        .by_tls;
  };
  EXPECT_TRUE(tls("https"));
  EXPECT_TRUE(tls("http, HTTPS"));
  EXPECT_FALSE(tls("https, http"));
  EXPECT_FALSE(tls("https,"));
  EXPECT_FALSE(tls("httpsx"));
  Remote peer{.address = "10.0.0.3", .by_tls = true};
  EXPECT_TRUE(find_remote(peer, {{"X-Forwarded-For", "198.51.100.7"}}, trusted()).by_tls);
  EXPECT_FALSE(find_remote(peer, {{"X-Forwarded-Proto", "http"}}, trusted()).by_tls);
}

TEST(NetworkOf, is_the_address_and_of_ipv6_its_64) {
  EXPECT_EQ(network_of("192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(network_of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  EXPECT_EQ(network_of("2001:db8:1:2::9"), "2001:db8:1:2::/64");
  EXPECT_EQ(network_of("unix"), "unix");
}

}  // namespace
}  // namespace flotilla::http
