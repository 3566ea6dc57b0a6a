#include "http/cors.h"

#include <algorithm>
#include <cctype>

namespace flotilla::http {
namespace {

// What a page's script may read besides the few that it may anyway.
constexpr const char* kExposed =
    "X-Request-Id, Request-Id, Retry-After, X-Ratelimit-Limit-Requests, "
    "X-Ratelimit-Remaining-Requests, X-Ratelimit-Reset-Requests, X-Ratelimit-Limit-Tokens, "
    "X-Ratelimit-Remaining-Tokens, X-Ratelimit-Reset-Tokens";
constexpr const char* kMethods = "GET, POST, DELETE";
constexpr const char* kMaxAge = "7200";  // seconds; browsers cut it at that or more
constexpr std::size_t kAskedMax = 4096;

bool is_scheme(std::string_view text) {
  return !text.empty() && std::islower(static_cast<unsigned char>(text.front())) != 0 &&
         std::ranges::all_of(text, [](unsigned char c) {
           return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '+' || c == '-' || c == '.';
         });
}

bool is_usual_port(std::string_view origin) {
  return (origin.starts_with("https://") && origin.ends_with(":443")) ||
         (origin.starts_with("http://") && origin.ends_with(":80"));
}

std::unexpected<Error> bad_origin(const std::string& origin, const char* why) {
  return fail(Code::InvalidArgument, "origin '" + origin + "' " + why +
                                         "; write it as a browser sends it: https://app.example, "
                                         "with :PORT where that is not the scheme's own");
}

Result<void> check_origin(const std::string& origin) {
  const std::size_t end = origin.find("://");
  if (end == std::string::npos || !is_scheme(std::string_view(origin).substr(0, end))) {
    return bad_origin(origin, "does not begin with a scheme");
  }
  const std::string_view host = std::string_view(origin).substr(end + 3);
  if (host.empty()) return bad_origin(origin, "has no host");
  if (host.find_first_of("/?#@*") != std::string_view::npos) {
    return bad_origin(origin, "is more than scheme, host and port");
  }
  const bool plain = std::ranges::all_of(host, [](unsigned char c) {
    return c > ' ' && c < 0x7f && std::isupper(c) == 0 && c != ',';
  });
  if (!plain) return bad_origin(origin, "has a capital or another letter that no browser sends");
  if (is_usual_port(origin)) return bad_origin(origin, "names the scheme's own port");
  return {};
}

// A list of header names, as a browser asks for them.
bool is_name_list(std::string_view text) {
  return text.size() <= kAskedMax && std::ranges::all_of(text, [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == ',' || c == ' ';
         });
}

// An exchange whose answer has more headers.
class WithHeaders final : public Exchange {
 public:
  WithHeaders(Exchange& inner, Headers more) : inner_(inner), more_(std::move(more)) {}

  const Request& request() const override { return inner_.request(); }
  Request take_request() override { return inner_.take_request(); }
  Awaitable<bool> respond(Response response) override {
    add_to(response.headers);
    return inner_.respond(std::move(response));
  }
  Awaitable<bool> start(int status, Headers headers, std::string_view first) override {
    add_to(headers);
    return inner_.start(status, std::move(headers), first);
  }
  Awaitable<bool> write(std::string_view bytes) override { return inner_.write(bytes); }
  Awaitable<bool> finish(std::string_view last) override { return inner_.finish(last); }
  void abort() override { inner_.abort(); }
  bool started() const override { return inner_.started(); }
  bool client_gone() const override { return inner_.client_gone(); }
  void on_client_gone(std::function<void()> callback) override {
    inner_.on_client_gone(std::move(callback));
  }

 private:
  void add_to(Headers& headers) const {
    for (const auto& [name, value] : more_.fields()) headers.add(name, value);
  }

  Exchange& inner_;
  const Headers more_;
};

}  // namespace

Result<Cors> Cors::make(std::vector<std::string> origins) {
  Cors cors;
  cors.everyone_ = std::ranges::find(origins, "*") != origins.end();
  for (const std::string& origin : origins) {
    if (origin == "*") continue;
    if (auto may = check_origin(origin); !may) return fail(may.error());
  }
  cors.origins_ = std::move(origins);
  return cors;
}

bool Cors::allows(std::string_view origin) const {
  return everyone_ || std::ranges::find(origins_, origin) != origins_.end();
}

void Cors::add_to(Headers& headers, std::string_view origin) const {
  // What is answered depends on who asks: a cache between must know.
  if (!everyone_) headers.add("Vary", "Origin");
  if (!origin.empty() && allows(origin)) {
    headers.add("Access-Control-Allow-Origin", everyone_ ? "*" : std::string(origin));
  }
}

Awaitable<void> Cors::handle(Exchange& exchange, const Handler& next) const {
  const Headers& asked = exchange.request().headers;
  const std::string origin(asked.find("Origin").value_or(""));
  const bool preflight = exchange.request().method == "OPTIONS" && !origin.empty() &&
                         asked.find("Access-Control-Request-Method").has_value();
  Headers more;
  add_to(more, origin);
  if (!preflight || !allows(origin)) {
    if (!origin.empty() && allows(origin)) more.add("Access-Control-Expose-Headers", kExposed);
    WithHeaders wrapped(exchange, std::move(more));
    co_await next(wrapped);
    co_return;
  }
  more.add("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers");
  more.add("Access-Control-Allow-Methods", kMethods);
  // SDKs send headers of their own, which no list of ours would know; none of them opens anything.
  const std::string_view names = asked.find("Access-Control-Request-Headers").value_or("");
  if (!names.empty() && is_name_list(names)) {
    more.add("Access-Control-Allow-Headers", std::string(names));
  }
  more.add("Access-Control-Max-Age", kMaxAge);
  Response response{.status = 204, .headers = std::move(more), .body = {}};
  co_await exchange.respond(std::move(response));
}

}  // namespace flotilla::http
