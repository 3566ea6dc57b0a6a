#include "http/message.h"

#include <algorithm>

namespace flotilla::http {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char l = lower(c);
  return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

}  // namespace

std::optional<std::string_view> Headers::find(std::string_view name) const {
  for (const auto& [key, value] : fields_) {
    if (same_name(key, name)) return value;
  }
  return std::nullopt;
}

void Headers::add(std::string name, std::string value) {
  fields_.emplace_back(std::move(name), std::move(value));
}

void Headers::set(std::string name, std::string value) {
  remove(name);
  add(std::move(name), std::move(value));
}

void Headers::remove(std::string_view name) {
  std::erase_if(fields_, [&](const auto& field) { return same_name(field.first, name); });
}

void Headers::remove_prefix(std::string_view prefix) {
  std::erase_if(fields_, [&](const auto& field) {
    return same_name(std::string_view(field.first).substr(0, prefix.size()), prefix);
  });
}

std::string_view Request::path() const {
  return std::string_view(target).substr(0, target.find('?'));
}

std::optional<std::string> Request::query(std::string_view name) const {
  const std::size_t begin = target.find('?');
  if (begin == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(target).substr(begin + 1);
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const std::size_t equals = part.find('=');
    const auto key = percent_decode(part.substr(0, equals));
    if (!key || *key != name) continue;
    if (equals == std::string_view::npos) return std::string();
    std::string value(part.substr(equals + 1));
    std::ranges::replace(value, '+', ' ');  // as forms encode a space
    return percent_decode(value);
  }
  return std::nullopt;
}

std::vector<std::string_view> Request::cookies(std::string_view name) const {
  std::vector<std::string_view> values;
  std::string_view rest = headers.find("Cookie").value_or("");
  while (!rest.empty()) {
    std::string_view part = rest.substr(0, rest.find(';'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos || part.substr(0, equals) != name) continue;
    values.push_back(part.substr(equals + 1));
  }
  return values;
}

void add_error_fields(Headers& headers, const Error& error) {
  if (error.retry_after_s > 0) headers.set("Retry-After", std::to_string(error.retry_after_s));
  for (const auto& [name, value] : error.fields) headers.set(name, value);
}

Response json_response(int status, std::string body) {
  return Response{.status = status,
                  .headers = {{"Content-Type", "application/json"},
                              {"Cache-Control", "no-store"},
                              {"X-Content-Type-Options", "nosniff"}},
                  .body = std::move(body)};
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 100: return "Continue";
    case 101: return "Switching Protocols";
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 206: return "Partial Content";
    case 301: return "Moved Permanently";
    case 302: return "Found";
    case 303: return "See Other";
    case 304: return "Not Modified";
    case 307: return "Temporary Redirect";
    case 308: return "Permanent Redirect";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 406: return "Not Acceptable";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 411: return "Length Required";
    case 412: return "Precondition Failed";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 421: return "Misdirected Request";
    case 422: return "Unprocessable Content";
    case 425: return "Too Early";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 499: return "Client Closed Request";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 529: return "Overloaded";
    default: return "Unknown";
  }
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const int high = hex_value(text[i + 1]);
    const int low = hex_value(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return out;
}

}  // namespace flotilla::http
