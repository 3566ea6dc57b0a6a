#include "gateway/guard.h"

#include <functional>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace flotilla::gateway {
namespace {

http::Request local(std::string method = "GET") {
  http::Request request;
  request.method = std::move(method);
  request.peer = "127.0.0.1";
  request.peer_is_loopback = true;
  request.headers.add("Host", "127.0.0.1:8000");
  if (request.method != "GET") request.headers.add("Content-Type", "application/json");
  return request;
}

constexpr Instant kNow{};

TEST(Guard, serves_this_machine_without_token_or_key) {
  KeyRing keys;
  Guard guard({}, keys);
  for (const char* host : {"localhost", "LOCALHOST:8000", "127.0.0.1:8000", "[::1]:8000"}) {
    auto request = local("POST");
    request.headers.set("Host", host);
    EXPECT_TRUE(guard.may_use(request, kNow, 0)) << host;
    EXPECT_TRUE(guard.may_administer(request, kNow)) << host;
  }
}

TEST(Guard, a_foreign_peer_is_refused_without_a_key) {
  KeyRing keys;
  Guard guard({}, keys);
  auto request = local();
  request.peer = "10.0.0.9";
  request.peer_is_loopback = false;
  EXPECT_EQ(guard.may_use(request, kNow, 0).error().code, Code::Unauthenticated);
  EXPECT_EQ(guard.may_administer(request, kNow).error().code, Code::Unauthenticated);
}

TEST(Guard, anonymous_use_from_anywhere_only_when_allowed_and_never_of_admin) {
  KeyRing keys;
  Guard guard({.admin_token = {}, .allow_anonymous = true, .admin_hosts = {}}, keys);
  auto request = local("POST");
  request.peer = "10.0.0.9";
  request.peer_is_loopback = false;
  request.headers.set("Host", "box.example");
  request.headers.add("X-Forwarded-For", "10.0.0.1");
  EXPECT_TRUE(guard.may_use(request, kNow, 0));
  EXPECT_FALSE(guard.may_administer(request, kNow));
}

TEST(Guard, a_proxy_on_this_host_is_not_the_operator) {
  KeyRing keys;
  Guard guard({}, keys);
  for (const char* header : {"Forwarded", "via", "X-Forwarded-For", "x-forwarded-proto",
                             "X-Forwarded-Whatever", "X-Real-IP"}) {
    auto request = local();
    request.headers.add(header, "x");
    EXPECT_EQ(guard.may_use(request, kNow, 0).error().code, Code::Unauthenticated) << header;
    EXPECT_EQ(guard.may_administer(request, kNow).error().code, Code::Unauthenticated) << header;
  }
  auto request = local();
  request.http_1_0 = true;
  EXPECT_EQ(guard.may_use(request, kNow, 0).error().code, Code::Unauthenticated);
  EXPECT_EQ(guard.may_administer(request, kNow).error().code, Code::Unauthenticated);
  EXPECT_EQ(guard.may_observe(request, kNow, 0).error().code, Code::Unauthenticated);
}

TEST(Guard, a_page_of_another_site_gets_nothing_that_needs_no_key) {
  KeyRing keys;
  Guard guard({.admin_token = {},
               .allow_anonymous = false,
               .admin_hosts = {},
               .sites = {"https://app.example"}},
              keys);
  auto request = local();
  for (const char* from : {"cross-site", "same-site", "Cross-Site"}) {
    request.headers.set("Sec-Fetch-Site", from);
    EXPECT_EQ(guard.may_use(request, kNow, 0).error().code, Code::PermissionDenied) << from;
    EXPECT_EQ(guard.may_administer(request, kNow).error().code, Code::PermissionDenied) << from;
    EXPECT_EQ(guard.may_observe(request, kNow, 0).error().code, Code::PermissionDenied) << from;
  }
  request.headers.set("Origin", "https://app.example");
  EXPECT_TRUE(guard.may_use(request, kNow, 0)) << "listed";
  EXPECT_FALSE(guard.may_administer(request, kNow)) << "for /v1 only";
  request.headers.set("Origin", "https://evil.example");
  EXPECT_FALSE(guard.may_use(request, kNow, 0));
  request.headers.remove("Origin");
  for (const char* from : {"same-origin", "none"}) {
    request.headers.set("Sec-Fetch-Site", from);
    EXPECT_TRUE(guard.may_use(request, kNow, 0)) << from;
    EXPECT_TRUE(guard.may_administer(request, kNow)) << from;
  }
}

TEST(Guard, two_origins_are_a_malformed_request) {
  KeyRing keys;
  Guard guard({}, keys);
  auto request = local();
  request.headers.add("Origin", "http://127.0.0.1:8000");
  request.headers.add("Origin", "http://evil.example");
  EXPECT_EQ(guard.may_administer(request, kNow).error().code, Code::InvalidArgument);
  EXPECT_EQ(guard.may_use(request, kNow, 0).error().code, Code::InvalidArgument);
}

TEST(Guard, a_rebound_host_name_is_refused) {
  KeyRing keys;
  Guard guard({}, keys);
  for (const char* host :
       {"evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8000", "", "[::1",
        "[::1].evil.example", "127.0.0.1:x", "localhost:8000:evil", "127.0.0.1:1; Domain=evil"}) {
    auto request = local();
    request.headers.set("Host", host);
    EXPECT_FALSE(guard.may_use(request, kNow, 0)) << host;
    EXPECT_FALSE(guard.may_administer(request, kNow)) << host;
  }
}

TEST(Guard, another_sites_page_may_not_administer) {
  KeyRing keys;
  Guard guard({}, keys);
  auto request = local("POST");
  for (const char* origin :
       {"http://evil.example", "null", "http://127.0.0.1:9999", "http://127.0.0.1"}) {
    request.headers.set("Origin", origin);
    EXPECT_EQ(guard.may_administer(request, kNow).error().code, Code::PermissionDenied) << origin;
  }
  request.headers.set("Origin", "http://127.0.0.1:8000");
  EXPECT_TRUE(guard.may_administer(request, kNow));
}

TEST(Guard, form_posts_are_refused) {
  KeyRing keys;
  Guard guard({}, keys);
  for (const char* type :
       {"text/plain", "application/x-www-form-urlencoded", "", "application/jsonx"}) {
    auto request = local("POST");
    request.headers.set("Content-Type", type);
    EXPECT_EQ(guard.may_administer(request, kNow).error().code, Code::UnsupportedMedia) << type;
    EXPECT_EQ(guard.may_use(request, kNow, 0).error().code, Code::UnsupportedMedia) << type;
  }
  auto request = local("POST");
  request.headers.set("Content-Type", "Application/JSON; charset=utf-8");
  EXPECT_TRUE(guard.may_administer(request, kNow));
}

// Asked by the head, when no body is there yet.
TEST(Guard, a_body_that_is_no_json_is_refused_whatever_the_method) {
  KeyRing keys;
  Guard guard({}, keys);
  for (const auto& [name, value] :
       {std::pair("Content-Length", "5"), {"Transfer-Encoding", "chunked"}}) {
    auto request = local("DELETE");
    request.headers.set("Content-Type", "text/plain");
    EXPECT_TRUE(guard.may_administer(request, kNow)) << "there is no body";
    request.headers.set(name, value);
    EXPECT_EQ(guard.may_administer(request, kNow).error().code, Code::UnsupportedMedia) << name;
    request.headers.set("Content-Type", "application/json");
    EXPECT_TRUE(guard.may_administer(request, kNow)) << name;
  }
}

TEST(Guard, with_a_token_only_the_token_administers) {
  KeyRing keys;
  Guard guard({.admin_token = "s3cret", .allow_anonymous = false, .admin_hosts = {"fleet.example"}},
              keys);
  auto request = local();
  EXPECT_EQ(guard.may_administer(request, kNow).error().code, Code::Unauthenticated);
  for (const char* wrong :
       {"Bearer s3cre", "Bearer s3cret2", "Bearer ", "s3cret", "Basic s3cret"}) {
    request.headers.set("Authorization", wrong);
    EXPECT_FALSE(guard.may_administer(request, kNow)) << wrong;
  }
  request.headers.set("Authorization", "Bearer s3cret");
  EXPECT_TRUE(guard.may_administer(request, kNow));
  request.peer = "10.0.0.9";
  request.peer_is_loopback = false;
  request.headers.set("Host", "fleet.example:8000");
  EXPECT_TRUE(guard.may_administer(request, kNow));
}

TEST(Guard, ten_wrong_tokens_close_an_address_for_a_minute) {
  KeyRing keys;
  Guard guard({.admin_token = "s3cret", .allow_anonymous = false, .admin_hosts = {}}, keys);
  auto request = local();
  request.headers.add("Authorization", "Bearer no");
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(guard.may_administer(request, kNow).error().code, Code::Unauthenticated);
  }
  request.headers.set("Authorization", "Bearer s3cret");
  EXPECT_EQ(guard.may_administer(request, kNow).error().code, Code::ResourceExhausted);
  auto other = request;
  other.peer = "127.0.0.2";
  EXPECT_TRUE(guard.may_administer(other, kNow));
  EXPECT_TRUE(guard.may_administer(request, kNow + std::chrono::seconds(61)));
}

TEST(Guard, a_wrong_token_in_a_header_is_worth_one_line_an_address_and_minute) {
  KeyRing keys;
  Guard guard({.admin_token = "s3cret", .allow_anonymous = false, .admin_hosts = {}}, keys);
  const auto tell = [&guard](const http::Request& request, Instant now) {
    EXPECT_FALSE(guard.may_administer(request, now));
    return guard.is_guess_worth_telling(request, now);
  };
  auto request = local();
  EXPECT_FALSE(tell(request, kNow)) << "no secret is no guess";
  request.headers.add("Authorization", "Bearer no");
  EXPECT_TRUE(tell(request, kNow));
  EXPECT_FALSE(tell(request, kNow));
  request.headers.set("Authorization", "Bearer another");
  EXPECT_FALSE(tell(request, kNow));
  EXPECT_TRUE(tell(request, kNow + std::chrono::seconds(61)));
  request.headers.remove("Authorization");
  EXPECT_FALSE(tell(request, kNow + std::chrono::seconds(122)));
  int told = 0;
  request.headers.add("x-api-key", "no");
  for (int i = 0; i < 30; ++i) {
    request.peer = fmt::format("127.0.1.{}", i);
    told += tell(request, kNow + std::chrono::seconds(300)) ? 1 : 0;
  }
  EXPECT_EQ(told, 10) << "in all";
}

struct GuardWithKeys : testing::Test {
  std::string add(const std::string& id, std::int64_t expires = 0) {
    const std::string secret = make_secret();
    keys.put({.id = id,
              .hash = hash_of_secret(secret),
              .spec = {.name = id, .expires_unix_s = expires}});
    return secret;
  }
  Result<Caller> use(const std::string& secret, const char* header = "Authorization",
                     Instant now = kNow) {
    auto request = local("POST");
    if (!secret.empty()) {
      request.headers.add(header, (header[0] == 'A' ? "Bearer " : "") + secret);
    }
    return guard.may_use(request, now, 50);
  }
  KeyRing keys;
  Guard guard{{.admin_token = "the-admin-token", .allow_anonymous = false, .admin_hosts = {}},
              keys};
};

TEST_F(GuardWithKeys, any_key_will_do_until_there_is_one) {
  EXPECT_EQ(use("none")->key, "");
  EXPECT_EQ(use("none")->owner, "127.0.0.1");
  const std::string secret = add("key-1");
  EXPECT_EQ(use("none").error().reason, "invalid_api_key");
  EXPECT_EQ(use("").error().reason, "invalid_api_key");
  EXPECT_EQ(use(secret)->key, "key-1");
  EXPECT_EQ(use(secret)->owner, "key-1");
  EXPECT_EQ(use(secret, "x-api-key")->key, "key-1");
  for (const char* scheme : {"bearer ", "BEARER "}) {
    auto request = local("POST");
    request.headers.add("Authorization", scheme + secret);
    EXPECT_EQ(guard.may_use(request, kNow, 50)->key, "key-1") << "a scheme has no case";
  }
  keys.erase("key-1");
  EXPECT_EQ(use("none")->key, "");
}

TEST_F(GuardWithKeys, a_key_opens_the_metrics_nothing_of_admin_and_the_token_opens_all) {
  const std::string secret = add("key-1");
  auto request = local();
  request.headers.add("Authorization", "Bearer " + secret);
  EXPECT_EQ(guard.may_administer(request, kNow).error().code, Code::Unauthenticated);
  EXPECT_TRUE(guard.may_observe(request, kNow, 0));
  EXPECT_EQ(use("the-admin-token")->key, "");
  EXPECT_TRUE(use("the-admin-token")->is_operator);
  EXPECT_FALSE(use(secret)->is_operator);
  EXPECT_EQ(use("the-admin-token")->owner, "operator at 127.0.0.1");
  auto nobody = local();
  EXPECT_EQ(guard.may_observe(nobody, kNow, 0).error().code, Code::Unauthenticated);
  Guard without_token({}, keys);
  EXPECT_EQ(without_token.may_observe(nobody, kNow, 0).error().code, Code::Unauthenticated);
  EXPECT_TRUE(without_token.may_observe(request, kNow, 0));
}

TEST_F(GuardWithKeys, guessing_is_slow) {
  const std::string secret = add("key-1");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(use("guess").error().code, Code::Unauthenticated);
  EXPECT_EQ(use("guess").error().code, Code::ResourceExhausted);
  EXPECT_EQ(use("the-admin-token").error().code, Code::ResourceExhausted)
      << "else a hit would show";
  EXPECT_TRUE(use(secret)) << "a known key is no guess, and long enough that none hits it";
  EXPECT_TRUE(use("the-admin-token", "Authorization", kNow + std::chrono::minutes(2)));
}

// Each place where a secret is compared is as good as any other for guessing.
TEST_F(GuardWithKeys, guesses_at_the_token_count_wherever_they_are_made) {
  auto guess = local("POST");
  guess.headers.add("Authorization", "Bearer guess");
  auto right = local("POST");
  right.headers.add("Authorization", "Bearer the-admin-token");
  const auto administer = [&](const http::Request& one) {
    return guard.may_administer(one, kNow).has_value();
  };
  const auto observe = [&](const http::Request& one) {
    return guard.may_observe(one, kNow, 0).has_value();
  };
  const auto use_v1 = [&](const http::Request& one) {
    return guard.may_use(one, kNow, 0).has_value();
  };
  const auto log_in = [&](const http::Request& one) {
    return guard.log_in(one, one.headers.find("Authorization")->substr(7), kNow).has_value();
  };
  const std::vector<std::function<bool(const http::Request&)>> places = {administer, observe,
                                                                         use_v1, log_in};
  add("key-1");
  for (std::size_t guessed = 0; guessed < places.size(); ++guessed) {
    guess.peer = right.peer = fmt::format("127.0.1.{}", guessed);
    for (const auto& place : places) EXPECT_TRUE(place(right));
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(places[guessed](guess));
    for (const auto& place : places) EXPECT_FALSE(place(right)) << guessed;
  }
}

TEST_F(GuardWithKeys, where_no_key_is_needed_a_guess_tells_nothing) {
  auto request = local("POST");
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(use(fmt::format("guess-{}", i)));
  EXPECT_FALSE(use("the-admin-token")->is_operator);
  request.headers.add("Authorization", "Bearer the-admin-token");
  EXPECT_EQ(guard.may_administer(request, kNow).error().code, Code::ResourceExhausted);
  request.peer = "10.0.0.9";
  request.peer_is_loopback = false;
  EXPECT_TRUE(guard.may_use(request, kNow, 0)->is_operator);
  request.headers.set("Authorization", "Bearer none");
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(guard.may_use(request, kNow, 0).error().code, Code::Unauthenticated);
  EXPECT_EQ(guard.may_use(request, kNow, 0).error().code, Code::ResourceExhausted);
}

TEST_F(GuardWithKeys, the_same_useless_key_again_shuts_nobody_out) {
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(use("none")->is_operator);
  EXPECT_TRUE(use("the-admin-token")->is_operator);
}

TEST_F(GuardWithKeys, an_expired_key_is_refused) {
  EXPECT_EQ(use(add("old", 50)).error().reason, "expired_api_key");
  const std::string secret = add("new", 51);
  EXPECT_TRUE(use(secret));
  const std::string old = add("older", 40);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(use(old).error().reason, "expired_api_key") << "no guess";
  EXPECT_TRUE(use("the-admin-token"));
}

TEST_F(GuardWithKeys, what_let_a_request_in_is_looked_at_again_when_its_body_is_there) {
  const auto request = local("POST");
  const auto still = [&](const Caller& caller, std::int64_t unix_s = 50) {
    const auto may = guard.still_may_use(request, caller, kNow, unix_s);
    return may ? std::string("yes") : may.error().reason;
  };
  const Caller nobody = *use("");
  EXPECT_EQ(still(nobody), "yes");
  const Caller mine = *use(add("key-1", 60));
  EXPECT_EQ(still(nobody), "invalid_api_key") << "there is a key now";
  EXPECT_EQ(still(mine), "yes");
  EXPECT_EQ(still(mine, 60), "expired_api_key");
  keys.erase("key-1");
  EXPECT_EQ(still(mine), "invalid_api_key");
  const Guard open({.admin_token = {}, .allow_anonymous = true, .admin_hosts = {}}, keys);
  add("key-2");
  EXPECT_TRUE(open.still_may_use(request, nobody, kNow, 50));
}

TEST(Guard, as_soon_as_there_is_a_key_each_page_needs_one) {
  KeyRing keys;
  keys.put({.id = "key-1", .hash = "h", .spec = {.name = "n"}});
  Guard guard({}, keys);
  auto request = local("POST");
  EXPECT_FALSE(guard.may_use(request, kNow, 0)) << "no page";
  request.headers.add("Origin", "http://127.0.0.1:8000");
  EXPECT_FALSE(guard.may_use(request, kNow, 0)) << "anybody can write that";
  auto with_token = request;
  EXPECT_FALSE(
      Guard({.admin_token = "the-admin-token", .allow_anonymous = false, .admin_hosts = {}}, keys)
          .may_use(with_token, kNow, 0))
      << "there it logs in";
  request.headers.set("Origin", "http://evil.example");
  EXPECT_FALSE(guard.may_use(request, kNow, 0));
  request.headers.set("Origin", "http://evil.example:8000");
  request.headers.set("Host", "evil.example:8000");
  EXPECT_FALSE(guard.may_use(request, kNow, 0)) << "rebinding";
}

struct GuardWithLogin : testing::Test {
  // A browser's request from a page of ours.
  http::Request browser(std::string method, const std::string& secret) {
    auto request = local(std::move(method));
    request.headers.add("Cookie", "theme=dark; " + Guard::login_cookie(request) + "=" + secret);
    if (request.method != "GET") request.headers.add("Origin", "http://127.0.0.1:8000");
    return request;
  }
  std::string log_in() { return *guard.log_in(local("POST"), "the-admin-token", kNow); }
  KeyRing keys;
  Guard guard{{.admin_token = "the-admin-token", .allow_anonymous = false, .admin_hosts = {}},
              keys};
};

TEST_F(GuardWithLogin, a_log_in_opens_administration_chat_and_metrics) {
  keys.put({.id = "key-1", .hash = "h", .spec = {.name = "n"}});
  const std::string secret = log_in();
  for (const char* method : {"GET", "POST"}) {
    const auto request = browser(method, secret);
    EXPECT_TRUE(guard.may_administer(request, kNow)) << method;
    EXPECT_TRUE(guard.may_observe(request, kNow, 0)) << method;
    ASSERT_TRUE(guard.may_use(request, kNow, 0)) << method;
    EXPECT_EQ(guard.may_use(request, kNow, 0)->key, "");
    EXPECT_EQ(guard.may_use(request, kNow, 0)->owner, "operator at 127.0.0.1");
  }
  const auto wrong = browser("GET", secret + "0");
  EXPECT_EQ(guard.may_administer(wrong, kNow).error().code, Code::Unauthenticated);
  EXPECT_EQ(guard.may_use(wrong, kNow, 0).error().code, Code::Unauthenticated);
}

TEST_F(GuardWithLogin, more_cookies_of_its_name_shut_nobody_out) {
  auto request = browser("POST", log_in());
  const std::string name = Guard::login_cookie(request);
  const std::string sent(*request.headers.find("Cookie"));
  for (const std::string& cookies :
       {fmt::format("{}=evil; {}", name, sent), fmt::format("{}; {}=evil", sent, name)}) {
    request.headers.set("Cookie", cookies);
    EXPECT_TRUE(guard.may_administer(request, kNow)) << cookies;
    EXPECT_FALSE(guard.login_ended(request, kNow)) << cookies;
  }
  EXPECT_TRUE(*guard.log_out(request, kNow));
  EXPECT_FALSE(guard.may_administer(request, kNow));
  EXPECT_TRUE(guard.login_ended(request, kNow));
}

TEST_F(GuardWithLogin, the_audit_says_by_what_one_came) {
  auto request = browser("POST", log_in());
  EXPECT_STREQ(guard.way_in(request), "a log-in from ");
  request.headers.add("Authorization", "Basic x");
  EXPECT_TRUE(guard.may_administer(request, kNow));
  EXPECT_STREQ(guard.way_in(request), "a log-in from ") << "what is no token opened nothing";
  request.headers.set("x-api-key", "the-admin-token");
  EXPECT_TRUE(guard.may_administer(request, kNow));
  EXPECT_STREQ(guard.way_in(request), "the token from ");
  EXPECT_STREQ(Guard({}, keys).way_in(request), "");
}

TEST_F(GuardWithLogin, what_changes_something_comes_from_an_own_page) {
  const std::string secret = log_in();
  for (const char* method : {"POST", "PUT", "DELETE"}) {
    auto request = browser(method, secret);
    EXPECT_TRUE(guard.may_administer(request, kNow)) << method;
    request.headers.remove("Origin");
    EXPECT_EQ(guard.may_administer(request, kNow).error().code, Code::PermissionDenied) << method;
    EXPECT_EQ(guard.may_use(request, kNow, 0).error().code, Code::PermissionDenied) << method;
    for (const char* origin : {"http://127.0.0.1:9000", "http://evil.example", "null"}) {
      request.headers.set("Origin", origin);
      EXPECT_EQ(guard.may_administer(request, kNow).error().code, Code::PermissionDenied) << origin;
      EXPECT_EQ(guard.may_use(request, kNow, 0).error().code, Code::PermissionDenied) << origin;
      EXPECT_EQ(guard.log_out(request, kNow).error().code, Code::PermissionDenied) << origin;
    }
  }
  auto read = browser("GET", secret);
  read.headers.set("Origin", "http://evil.example");
  EXPECT_EQ(guard.may_observe(read, kNow, 0).error().code, Code::PermissionDenied);
  auto form = browser("POST", secret);
  form.headers.set("Content-Type", "text/plain");
  EXPECT_EQ(guard.may_administer(form, kNow).error().code, Code::UnsupportedMedia);
}

TEST_F(GuardWithLogin, what_was_let_in_by_it_ends_with_it) {
  const std::string secret = log_in();
  const auto follows = browser("GET", secret);
  auto by_token = local();
  by_token.headers.add("Authorization", "Bearer the-admin-token");
  const auto sends = browser("POST", secret);
  const Caller person = *guard.may_use(sends, kNow, 0);
  const auto still_may = [&](Instant at) {
    const bool use = guard.still_may_use(sends, person, at, 0).has_value();
    EXPECT_EQ(use, guard.still_may_administer(sends, at).has_value());
    return use;
  };
  EXPECT_FALSE(guard.login_ended(follows, kNow));
  EXPECT_TRUE(still_may(kNow));
  EXPECT_TRUE(guard.login_ended(follows, kNow + std::chrono::hours(12)));
  EXPECT_FALSE(still_may(kNow + std::chrono::hours(12)));
  EXPECT_TRUE(*guard.log_out(browser("POST", secret), kNow));
  EXPECT_FALSE(still_may(kNow));
  EXPECT_TRUE(guard.still_may_administer(by_token, kNow));
  EXPECT_TRUE(guard.login_ended(follows, kNow));
  EXPECT_FALSE(guard.login_ended(by_token, kNow));
  EXPECT_FALSE(guard.may_administer(follows, kNow));
  const auto again = guard.log_out(browser("POST", secret), kNow);
  ASSERT_TRUE(again) << "once more is no mistake";
  EXPECT_FALSE(*again) << "but nothing happened";
}

TEST_F(GuardWithLogin, guessing_is_slow_and_asking_without_is_no_guess) {
  const auto request = local("POST");
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(guard.may_administer(request, kNow).error().code, Code::Unauthenticated);
    EXPECT_EQ(guard.may_administer(browser("GET", "old"), kNow).error().code,
              Code::Unauthenticated);
  }
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(guard.log_in(request, "guess", kNow).error().code, Code::Unauthenticated);
  }
  const auto closed = guard.log_in(request, "the-admin-token", kNow);
  EXPECT_EQ(closed.error().code, Code::ResourceExhausted) << "else a hit would show";
  EXPECT_EQ(closed.error().retry_after_s, 60);
  auto other = request;
  other.peer = "127.0.0.2";
  EXPECT_TRUE(guard.log_in(other, "the-admin-token", kNow));
  EXPECT_TRUE(guard.log_in(request, "the-admin-token", kNow + std::chrono::seconds(61)));
}

TEST_F(GuardWithLogin, a_foreign_page_cannot_log_in) {
  auto request = local("POST");
  request.headers.add("Origin", "http://evil.example");
  EXPECT_EQ(guard.log_in(request, "the-admin-token", kNow).error().code, Code::PermissionDenied);
  request.headers.remove("Origin");
  request.headers.set("Content-Type", "application/x-www-form-urlencoded");
  EXPECT_EQ(guard.log_in(request, "the-admin-token", kNow).error().code, Code::UnsupportedMedia);
  EXPECT_EQ(Guard({}, keys).log_in(local("POST"), "", kNow).error().code, Code::Conflict);
}

TEST(Guard, on_all_addresses_each_address_administers_but_no_unlisted_name) {
  KeyRing keys;
  Guard guard({.admin_token = "the-admin-token",
               .allow_anonymous = false,
               .admin_hosts = {"fleet.example"},
               .admin_by_address = true},
              keys);
  auto request = local();
  request.headers.add("Authorization", "Bearer the-admin-token");
  for (const char* host : {"192.168.1.5:8000", "[fd00::1]:8000", "fleet.example"}) {
    request.headers.set("Host", host);
    EXPECT_TRUE(guard.may_administer(request, kNow)) << host;
  }
  for (const char* host : {"evil.example", "1.2.3.4.evil.example", ""}) {
    request.headers.set("Host", host);
    EXPECT_EQ(guard.may_administer(request, kNow).error().code, Code::PermissionDenied) << host;
  }
}

TEST(Guard, cookies_of_two_ports_have_two_names) {
  auto request = local();
  EXPECT_EQ(Guard::login_cookie(request), "flotilla_login_8000");
  for (const auto& [host, name] :
       {std::pair{"fleet.example", "flotilla_login"}, std::pair{"[::1]", "flotilla_login"},
        std::pair{"[::1]:81", "flotilla_login_81"},
        std::pair{"127.0.0.1:1; Domain=evil", "flotilla_login"}}) {
    request.headers.set("Host", host);
    EXPECT_EQ(Guard::login_cookie(request), name) << host;
  }
}

TEST(Guard, the_server_may_ask_itself) {
  KeyRing keys;
  keys.put({.id = "key-1", .hash = "h", .spec = {.name = "n"}});
  Guard guard(
      {.admin_token = {}, .allow_anonymous = false, .admin_hosts = {}, .own_secret = "fl-own"},
      keys);
  auto request = local("POST");
  request.headers.add("Authorization", "Bearer fl-own");
  EXPECT_TRUE(guard.may_use(request, kNow, 0));
  EXPECT_FALSE(Guard({}, keys).may_use(request, kNow, 0));
}

TEST(Guard, anonymous_where_allowed_beside_keys) {
  KeyRing keys;
  const std::string secret = make_secret();
  keys.put({.id = "key-1", .hash = hash_of_secret(secret), .spec = {.name = "n"}});
  Guard guard({.admin_token = {}, .allow_anonymous = true, .admin_hosts = {}}, keys);
  auto request = local("POST");
  EXPECT_EQ(guard.may_use(request, kNow, 0)->key, "");
  request.headers.add("Authorization", "Bearer wrong");
  EXPECT_FALSE(guard.may_use(request, kNow, 0)) << "a wrong key is a mistake";
  request.headers.set("Authorization", "Bearer " + secret);
  EXPECT_EQ(guard.may_use(request, kNow, 0)->key, "key-1");
}

}  // namespace
}  // namespace flotilla::gateway
