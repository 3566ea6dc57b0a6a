#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "gateway/attempts.h"
#include "gateway/key_ring.h"
#include "gateway/logins.h"
#include "http/message.h"

namespace flotilla::gateway {

struct GuardPolicy {
  std::string admin_token;               // empty = none is set
  bool allow_anonymous = false;          // /v1 without a key from anywhere
  std::vector<std::string> admin_hosts;  // Host values that may reach /admin besides loopback names
  bool admin_by_address = false;         // and any that is an address in numbers
  std::string own_secret = {};           // by which the server may ask itself
  std::vector<std::string> sites = {};   // Origins whose pages may use /v1; "*": all
};

// Who uses /v1.
struct Caller {
  std::string key;  // the API key's id; empty without one
  // Whose requests these are: the key's id, or the peer's address without one. At one address the
  // operator is another than those who need no key.
  std::string owner;
  bool is_operator = false;  // by the admin token, a log-in, or the server's own secret
};

// Who may. Pure: a request in, yes or the reason in words. The gateway's I/O thread owns it.
//
// Without a token or key a request counts as the operator's own only if it comes from this machine
// to a loopback name and no proxy stands before it: a proxy on this host makes the world look like
// loopback, and another site's page reaches 127.0.0.1 by DNS rebinding.
//
// Where a token is set a browser logs in with it and then sends a cookie. Browsers send cookies for
// whoever wrote the page, so what changes something must come from a page of ours (Origin).
//
// Wherever a secret is compared the rule is one (try_secret): a known key opens what it opens,
// whatever failed before, since keys are too long to be guessed; what is none is a guess at the
// admin token, which an operator chose, and so it counts (Attempts) before it is compared.
class Guard {
 public:
  // `keys` outlives it.
  Guard(GuardPolicy policy, const KeyRing& keys);

  // /v1/*, /tokenize, /detokenize: by an API key (as bearer token or x-api-key), the admin token or
  // a log-in; without any as said above while no key exists, or by anybody where that is allowed.
  Result<Caller> may_use(const http::Request& request, Instant now, std::int64_t unix_s);
  // What let the request in does so yet, now that its body or its turn has come: the key is there
  // and its time not over, the log-in not ended, or there is still no key where none was needed.
  Result<void> still_may_use(const http::Request& request, const Caller& caller, Instant now,
                             std::int64_t unix_s) const;
  // /metrics: by a key, the admin token or a log-in as soon as there is a key or token.
  Result<void> may_observe(const http::Request& request, Instant now, std::int64_t unix_s);
  // /admin/*: the token or a log-in where a token is set, JSON bodies only, no foreign page (CSRF).
  Result<void> may_administer(const http::Request& request, Instant now);
  // As still_may_use().
  Result<void> still_may_administer(const http::Request& request, Instant now) const;

  bool has_token() const { return !policy_.admin_token.empty(); }
  // The cookie's value for the right token. Conflict: none is set.
  Result<std::string> log_in(const http::Request& request, std::string_view token, Instant now);
  // After log_in() failed: whether that deserves a line of the audit, which nobody may fill who is
  // not let in.
  bool is_worth_telling(const http::Request& request, Instant now);
  // After may_administer() refused: likewise, and only where it was for a wrong secret.
  bool is_guess_worth_telling(const http::Request& request, Instant now);
  // Whether somebody was logged in.
  Result<bool> log_out(const http::Request& request, Instant now);
  // By what may_administer() let the request in, as the audit says it; empty: it needed nothing.
  const char* way_in(const http::Request& request) const;
  // The log-in that let the request in is over, and what it follows has to end.
  bool login_ended(const http::Request& request, Instant now) const;
  // Named after the server's port: a browser gives a host's cookies to all ports of it.
  static std::string login_cookie(const http::Request& request);

 private:
  enum class Opened { ForOperator, ForKey };
  struct Secret {
    Opened opened = Opened::ForOperator;
    const KeyRing::Key* key = nullptr;
  };
  // Unauthenticated: it is nobody's. ResourceExhausted: too many were.
  Result<Secret> try_secret(const http::Request& request, std::string_view secret, Instant now);
  bool is_operators_secret(const http::Request& request, std::string_view secret, Instant now);
  Result<void> check_site(const http::Request& request) const;
  Result<void> check_own_page(const http::Request& request) const;
  std::optional<std::string_view> held_login(const http::Request& request, Instant now) const;
  Result<bool> find_login(const http::Request& request, Instant now);
  Result<void> is_local_operator(const http::Request& request) const;
  Result<void> is_open(const http::Request& request) const;
  Result<void> check_page(const http::Request& request) const;
  bool host_is_listed(const http::Request& request) const;
  Result<void> check_token(const http::Request& request, Instant now);
  Result<Caller> find_caller(const http::Request& request, Instant now, std::int64_t unix_s);

  GuardPolicy policy_;
  const KeyRing& keys_;
  Logins logins_;
  Attempts attempts_;
};

}  // namespace flotilla::gateway
