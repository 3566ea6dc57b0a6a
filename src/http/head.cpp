#include "http/head.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>

namespace flotilla::http {
namespace {

namespace beast = boost::beast;
using beast::error_code;
using beast::string_view;

std::string_view view(string_view text) { return {text.data(), text.size()}; }

bool is_field(std::string_view name, std::string_view expected) {
  return beast::iequals(string_view(name.data(), name.size()),
                        string_view(expected.data(), expected.size()));
}

// Beast reads the head, we read the body: only the two callbacks of a head do something.
template <bool is_request>
class HeadParser final : public beast::http::basic_parser<is_request> {
 public:
  explicit HeadParser(std::string_view bytes) {
    this->header_limit(
        static_cast<std::uint32_t>(std::min<std::size_t>(bytes.size() + 1, 1U << 30)));
    this->body_limit(boost::none);
    // Whether there is a body is decided by body_framing, from the fields.
    this->skip(true);
    this->put(boost::asio::buffer(bytes.data(), bytes.size()), error_);
    if (!error_ && !this->is_header_done()) error_ = beast::http::error::partial_message;
  }

  const error_code& error() const { return error_; }

  std::string method, target;
  int status = 0, version = 11;
  Headers headers;

 private:
  void on_request_impl(beast::http::verb, string_view verb, string_view to, int http,
                       error_code&) override {
    method = view(verb);
    target = view(to);
    version = http;
  }
  void on_response_impl(int code, string_view, int http, error_code&) override {
    status = code;
    version = http;
  }
  void on_field_impl(beast::http::field, string_view name, string_view value,
                     error_code&) override {
    headers.add(std::string(view(name)), std::string(view(value)));
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(string_view body, error_code&) override { return body.size(); }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view body, error_code&) override {
    return body.size();
  }
  void on_finish_impl(error_code&) override {}

  error_code error_;
};

std::vector<std::string_view> values_of(const Headers& headers, std::string_view name) {
  std::vector<std::string_view> values;
  for (const auto& [key, value] : headers.fields()) {
    if (is_field(key, name)) values.push_back(value);
  }
  return values;
}

bool has_token(const std::vector<std::string_view>& values, std::string_view token) {
  for (std::string_view list : values) {
    while (!list.empty()) {
      std::string_view item = list.substr(0, list.find(','));
      list.remove_prefix(std::min(list.size(), item.size() + 1));
      while (!item.empty() && (item.front() == ' ' || item.front() == '\t')) item.remove_prefix(1);
      while (!item.empty() && (item.back() == ' ' || item.back() == '\t')) item.remove_suffix(1);
      if (is_field(item, token)) return true;
    }
  }
  return false;
}

bool keeps_alive(const Headers& headers, int version) {
  const auto connection = values_of(headers, "Connection");
  if (has_token(connection, "close")) return false;
  return version >= 11 || has_token(connection, "keep-alive");
}

// Digits only: no sign, no list, no space.
std::optional<std::uint64_t> parse_length(std::string_view text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::unexpected<HeadError> refuse(std::string message) {
  return std::unexpected(HeadError{.status = 400, .message = std::move(message)});
}

struct Target {
  std::string path;
  std::optional<std::string> host;  // where the target names one
};

// "http://host/path" -> "/path" of "host", as a client talking to a proxy writes it.
Target take_apart(std::string target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!is_field(std::string_view(target).substr(0, scheme.size()), scheme)) continue;
    const std::size_t path = std::min(target.find_first_of("/?", scheme.size()), target.size());
    std::string host = target.substr(scheme.size(), path - scheme.size());
    target.erase(0, path);
    return {.path = target.starts_with('/') ? std::move(target) : "/" + target,
            .host = std::move(host)};
  }
  return {.path = std::move(target), .host = std::nullopt};
}

}  // namespace

HeadScanner::State HeadScanner::scan(std::string_view bytes) {
  while (true) {
    // A head begins with a method or "HTTP"; what does not (a TLS hello) will not become one.
    if (line_ == 0 && !bytes.empty() && (bytes[0] < 'A' || bytes[0] > 'z')) return State::Malformed;
    if (line_ > 0 && line_ < bytes.size() && (bytes[line_] == ' ' || bytes[line_] == '\t')) {
      return State::Malformed;
    }
    const std::size_t lf = bytes.find('\n', std::max(scanned_, line_));
    scanned_ = bytes.size();
    if (lf == std::string_view::npos) return State::More;
    if (lf == line_ || bytes[lf - 1] != '\r') return State::Malformed;
    const bool empty = lf == line_ + 1;
    line_ = scanned_ = lf + 1;
    if (empty) return State::Whole;
  }
}

std::expected<RequestHead, HeadError> parse_request_head(std::string_view bytes) {
  HeadParser<true> parser(bytes);
  if (parser.error()) return refuse("the request is not valid HTTP: " + parser.error().message());
  RequestHead head;
  head.request.method = std::move(parser.method);
  Target target = take_apart(std::move(parser.target));
  head.request.target = std::move(target.path);
  head.request.headers = std::move(parser.headers);
  head.http_1_0 = head.request.http_1_0 = parser.version < 11;
  const Headers& headers = head.request.headers;
  head.keep_alive = keeps_alive(headers, parser.version);
  if (!head.request.target.starts_with('/') && head.request.target != "*") {
    return refuse("the request target must begin with '/'");
  }

  const auto hosts = values_of(headers, "Host");
  if (hosts.size() > 1) return refuse("more than one Host header");
  if (hosts.empty() && !head.http_1_0) return refuse("the Host header is missing");
  // Who looks at Host must see whom the request is for, and the target goes before it.
  if (target.host && (hosts.empty() || !is_field(*target.host, hosts[0])))
    return refuse("the request target names another host than the Host header");

  const auto codings = values_of(headers, "Transfer-Encoding");
  const auto lengths = values_of(headers, "Content-Length");
  if (!codings.empty()) {
    if (head.http_1_0) return refuse("Transfer-Encoding needs HTTP/1.1");
    if (!lengths.empty()) return refuse("both Transfer-Encoding and Content-Length");
    if (codings.size() > 1 || !is_field(codings[0], "chunked")) {
      return refuse("Transfer-Encoding must be 'chunked'");
    }
    head.chunked = true;
  } else if (!lengths.empty()) {
    if (lengths.size() > 1) return refuse("more than one Content-Length header");
    const auto length = parse_length(lengths[0]);
    if (!length) return refuse("Content-Length must be a decimal number");
    head.content_length = *length;
  }

  const auto expectations = values_of(headers, "Expect");
  if (!expectations.empty() && !head.http_1_0) {
    if (expectations.size() > 1 || !is_field(expectations[0], "100-continue")) {
      return std::unexpected(HeadError{.status = 417, .message = "Expect must be '100-continue'"});
    }
    head.expect_continue = true;
  }
  return head;
}

std::expected<ResponseHead, std::string> parse_response_head(std::string_view bytes) {
  HeadParser<false> parser(bytes);
  if (parser.error()) return std::unexpected(parser.error().message());
  ResponseHead head;
  head.status = parser.status;
  head.headers = std::move(parser.headers);
  head.keep_alive = keeps_alive(head.headers, parser.version);
  const auto codings = values_of(head.headers, "Transfer-Encoding");
  const auto lengths = values_of(head.headers, "Content-Length");
  if (!codings.empty()) {
    if (codings.size() > 1 || !is_field(codings[0], "chunked")) {
      return std::unexpected("Transfer-Encoding is not 'chunked'");
    }
    head.chunked = true;
    // Transfer-Encoding wins, but who sends both is not trusted with another answer.
    if (!lengths.empty()) head.keep_alive = false;
    return head;
  }
  for (const std::string_view text : lengths) {
    const auto length = parse_length(text);
    if (!length || (head.content_length && head.content_length != length)) {
      return std::unexpected("Content-Length is not one decimal number");
    }
    head.content_length = length;
  }
  return head;
}

void append_field(std::string& out, std::string_view name, std::string_view value) {
  const auto append_safe = [&out](std::string_view text) {
    for (const char c : text)
      out.push_back(static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c);
  };
  append_safe(name);
  out.append(": ");
  append_safe(value);
  out.append("\r\n");
}

}  // namespace flotilla::http
