#include "api/kept_items.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "api/json.h"
#include "api/stored_items.h"

namespace flotilla::api {
namespace {

constexpr std::size_t kLimitMax = 100;

std::unexpected<Error> wrong(std::string_view name, const std::string& value,
                             std::string_view must) {
  return fail(
      Error{.code = Code::InvalidArgument,
            .message = fmt::format("{} is {}; it {}", name, json::shown(json::Value(value)), must),
            .param = std::string(name)});
}

}  // namespace

Result<ItemsAsked> read_items_asked(const QueryValue& query) {
  ItemsAsked out;
  if (const auto order = query("order")) {
    if (*order != "asc" && *order != "desc") return wrong("order", *order, "must be asc or desc");
    out.newest_first = *order == "desc";
  }
  if (const auto limit = query("limit")) {
    const char* const end = limit->data() + limit->size();
    const auto [stopped, error] = std::from_chars(limit->data(), end, out.limit);
    if (error != std::errc{} || stopped != end || out.limit < 1 || out.limit > kLimitMax)
      return wrong("limit", *limit, fmt::format("must be an integer from 1 to {}", kLimitMax));
  }
  for (const std::string_view name : {"include", "include[]"}) {
    if (const auto more = query(name)) return wrong("include", *more, "cannot be asked for here");
  }
  out.after = query("after").value_or("");
  return out;
}

Result<std::string> input_items_json(const KeptAnswer& kept, const ItemsAsked& asked) {
  json::Array all = input_items(kept);
  if (asked.newest_first) std::reverse(all.begin(), all.end());
  auto first = all.begin();
  if (!asked.after.empty()) {
    first = std::find_if(all.begin(), all.end(), [&](const json::Value& item) {
      return item.at("id") == asked.after.c_str();
    });
    if (first == all.end()) return wrong("after", asked.after, "must be the id of an item");
    ++first;
  }
  const auto left = static_cast<std::size_t>(all.end() - first);
  const auto count = static_cast<std::ptrdiff_t>(std::min(left, asked.limit));
  json::Array data(first, first + count);
  json::Value first_id = data.empty() ? json::Value() : data.front().at("id");
  json::Value last_id = data.empty() ? json::Value() : data.back().at("id");
  return json::to_text(json::Object{{"object", "list"},
                                    {"data", std::move(data)},
                                    {"first_id", std::move(first_id)},
                                    {"last_id", std::move(last_id)},
                                    {"has_more", left > asked.limit}});
}

Result<void> check_response_query(const QueryValue& query) {
  if (const auto stream = query("stream"); stream && *stream != "false")
    return wrong("stream", *stream, "can only be false: a stored response comes whole");
  for (const std::string_view name : {"starting_after", "include", "include[]"}) {
    const std::string_view shown = name.substr(0, name.find('['));
    if (const auto value = query(name)) return wrong(shown, *value, "cannot be asked for here");
  }
  return {};
}

}  // namespace flotilla::api
