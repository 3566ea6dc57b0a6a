#include "api/error_body.h"

#include <array>

#include <fmt/format.h>

#include "api/json.h"
#include "api/json_answer.h"
#include "api/json_text.h"

namespace flotilla::api {
namespace {

struct Row {
  Code code;
  int status;
  std::string_view type;    // OpenAI's error.type
  std::string_view reason;  // OpenAI's error.code where the Error names none
  std::string_view theirs;  // Anthropic's error.type
};

constexpr std::array<Row, 15> kTable = {{
    {Code::InvalidArgument, 400, "invalid_request_error", "", "invalid_request_error"},
    {Code::Unauthenticated, 401, "authentication_error", "invalid_api_key", "authentication_error"},
    {Code::PermissionDenied, 403, "permission_error", "permission_denied", "permission_error"},
    {Code::NotFound, 404, "invalid_request_error", "not_found", "not_found_error"},
    {Code::MethodNotAllowed, 405, "invalid_request_error", "method_not_allowed",
     "invalid_request_error"},
    {Code::Conflict, 409, "conflict_error", "conflict", "invalid_request_error"},
    {Code::TooLarge, 413, "invalid_request_error", "too_large", "request_too_large"},
    {Code::UnsupportedMedia, 415, "invalid_request_error", "unsupported_media_type",
     "invalid_request_error"},
    {Code::Unprocessable, 422, "invalid_request_error", "unprocessable", "invalid_request_error"},
    {Code::ResourceExhausted, 429, "rate_limit_error", "rate_limit_exceeded", "rate_limit_error"},
    {Code::Internal, 500, "server_error", "internal_error", "api_error"},
    {Code::BadGateway, 502, "server_error", "bad_gateway", "api_error"},
    {Code::Unavailable, 503, "server_error", "unavailable", "overloaded_error"},
    {Code::DeadlineExceeded, 504, "timeout_error", "deadline_exceeded", "timeout_error"},
    // Nobody reads it; 499 is what logs and metrics call a client that went away.
    {Code::Cancelled, 499, "cancelled", "cancelled", "api_error"},
}};

const Row& row_of(Code code) {
  for (const Row& row : kTable) {
    if (row.code == code) return row;
  }
  return kTable[10];
}

std::string title_of(Code code) {
  std::string title(row_of(code).reason.empty() ? "invalid_request" : row_of(code).reason);
  for (char& c : title) {
    if (c == '_') c = ' ';
  }
  return title;
}

void append_or_null(std::string& out, std::string_view text) {
  if (text.empty()) {
    out += "null";
  } else {
    append_quoted(out, text);
  }
}

std::string text_of(const json::Object& object, std::string_view name) {
  const json::Value* value = object.if_contains({name.data(), name.size()});
  if (value == nullptr || !value->is_string()) return {};
  return {value->get_string().data(), value->get_string().size()};
}

}  // namespace

int http_status(Code code) { return row_of(code).status; }

Code code_of_status(int status) {
  for (const Row& row : kTable) {
    if (row.status == status) return row.code;
  }
  return status >= 400 && status < 500 ? Code::InvalidArgument : Code::Internal;
}

std::string openai_error_body(const Error& error) {
  const Row& row = row_of(error.code);
  std::string out = R"({"error":{"message":)";
  append_quoted(out, error.message);
  out += R"(,"type":)";
  append_quoted(out, row.type);
  out += R"(,"param":)";
  append_or_null(out, error.param);
  out += R"(,"code":)";
  append_or_null(out, error.reason.empty() ? row.reason : std::string_view(error.reason));
  out += "}}";
  return out;
}

std::string_view anthropic_error_type(Code code) { return row_of(code).theirs; }

std::string openai_error_event(const Error& error) {
  return "data: " + openai_error_body(error) + "\n\n";
}

std::string problem_body(const Error& error) {
  std::string out = R"({"type":"about:blank","title":)";
  append_quoted(out, title_of(error.code));
  fmt::format_to(std::back_inserter(out), R"(,"status":{},"detail":)", http_status(error.code));
  append_quoted(out, error.message);
  if (!error.param.empty()) {
    out += R"(,"param":)";
    append_quoted(out, error.param);
  }
  if (!error.reason.empty()) {
    out += R"(,"code":)";
    append_quoted(out, error.reason);
  }
  out += '}';
  return out;
}

Error parse_error_body(int status, std::string_view body) {
  Error error{.code = code_of_status(status), .message = {}};
  const auto object = json::parse_answer_object(body);
  if (object) {
    const json::Value* inner = object->if_contains("error");
    const json::Object& from =
        inner != nullptr && inner->is_object() ? inner->get_object() : *object;
    error.message = text_of(from, inner != nullptr ? "message" : "detail");
    error.param = text_of(from, "param");
    error.reason = text_of(from, "code");
    if (inner != nullptr && inner->is_string()) error.message = text_of(*object, "error");
  }
  if (error.message.empty()) {
    error.message = fmt::format("status {}: {}", status, body.substr(0, 200));
  }
  return error;
}

}  // namespace flotilla::api
