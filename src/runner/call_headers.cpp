#include "runner/call_headers.h"

#include <algorithm>
#include <charconv>
#include <type_traits>

#include <fmt/format.h>

#include "api/runner_protocol.h"
#include "base/numbers.h"
#include "base/random.h"

namespace flotilla::runner {
namespace {

constexpr std::int64_t kDeadlineMaxMs = 7LL * 24 * 3600 * 1000;

std::string text_of(const http::Headers& headers, std::string_view name) {
  return std::string(headers.find(name).value_or(std::string_view{}));
}

// Reads a decimal number if the header is there; false: it is there and no number.
template <class T>
bool read_number(const http::Headers& headers, std::string_view name, std::optional<T>& out) {
  const auto text = headers.find(name);
  if (!text) return true;
  if constexpr (std::is_floating_point_v<T>) {
    out = parse_double(*text);
    return out.has_value();
  } else {
    T value{};
    const char* end = text->data() + text->size();
    const auto [stopped, error] = std::from_chars(text->data(), end, value);
    if (error != std::errc{} || stopped != end) return false;
    out = value;
    return true;
  }
}

std::unexpected<Error> bad_header(std::string_view name, const http::Headers& headers) {
  return fail(Code::InvalidArgument, fmt::format("header {} is \"{}\"; it must be a decimal number",
                                                 name, headers.find(name).value_or("")));
}

}  // namespace

Result<CallHeaders> read_call_headers(const http::Headers& headers, bool trusted) {
  CallHeaders out;
  const auto protocol = trusted ? headers.find(api::kHeaderProtocol) : std::nullopt;
  if (!protocol) {
    out.request_id = random_hex(12);
    return out;
  }
  if (*protocol != std::to_string(api::kRunnerProtocol)) {
    return fail(Code::InvalidArgument,
                fmt::format("protocol {} is not spoken here; this runner speaks {}", *protocol,
                            api::kRunnerProtocol));
  }
  out.protocol = true;
  out.request_id = text_of(headers, api::kHeaderRequestId);
  if (out.request_id.empty()) out.request_id = random_hex(12);
  out.alias = text_of(headers, api::kHeaderAlias);
  out.node = text_of(headers, api::kHeaderNode);
  out.cache_group = text_of(headers, api::kHeaderCacheGroup);
  std::optional<double> queued_ms;
  std::optional<std::size_t> resume_bytes;
  std::optional<std::int64_t> deadline_ms;
  if (!read_number(headers, api::kHeaderCreated, out.created)) {
    return bad_header(api::kHeaderCreated, headers);
  }
  if (!read_number(headers, api::kHeaderQueuedMs, queued_ms)) {
    return bad_header(api::kHeaderQueuedMs, headers);
  }
  if (!read_number(headers, api::kHeaderSeed, out.seed))
    return bad_header(api::kHeaderSeed, headers);
  if (!read_number(headers, api::kHeaderResumeBytes, resume_bytes)) {
    return bad_header(api::kHeaderResumeBytes, headers);
  }
  if (!read_number(headers, api::kHeaderDeadlineMs, deadline_ms)) {
    return bad_header(api::kHeaderDeadlineMs, headers);
  }
  out.queued_ms = queued_ms.value_or(0);
  out.resume_bytes = resume_bytes.value_or(0);
  if (deadline_ms) {
    out.first_token_within =
        std::chrono::milliseconds(std::clamp<std::int64_t>(*deadline_ms, 0, kDeadlineMaxMs));
  }
  return out;
}

}  // namespace flotilla::runner
