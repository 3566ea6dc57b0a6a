#include "api/request_case.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "api/json.h"
#include "api/json_members.h"
#include "api/stream_events.h"
#include "base/json_text.h"

namespace flotilla::api {
namespace {

// Cases hold what servers must refuse, and answers come from servers that are not ours.
constexpr json::Limits kLimits{.bytes_max = 64 << 20, .depth_max = 500, .values_max = 10'000'000};
constexpr double kSecondsMax = 60;
constexpr std::size_t kShownMax = 160;
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

std::string repeated(const json::Array& of) {
  std::string out;
  if (of.size() != 2 || !of[0].is_string() || !of[1].is_int64()) return out;
  for (std::int64_t i = 0; i < of[1].get_int64(); ++i) out += std::string_view(of[0].get_string());
  return out;
}

// "$MODEL" and {"$repeat": [text, times]} written out.
json::Value filled(const json::Value& value, std::string_view model) {
  if (value.is_string() && std::string_view(value.get_string()) == "$MODEL") {
    return json::Value(boost::json::string_view(model.data(), model.size()));
  }
  if (value.is_array()) {
    json::Array out;
    for (const json::Value& item : value.get_array()) out.push_back(filled(item, model));
    return out;
  }
  if (!value.is_object()) return value;
  const json::Value* repeat = json::member(value.get_object(), "$repeat");
  if (repeat != nullptr && repeat->is_array()) {
    const std::string text = repeated(repeat->get_array());
    return json::Value(boost::json::string_view(text.data(), text.size()));
  }
  json::Object out;
  for (const auto& [name, item] : value.get_object()) out.emplace(name, filled(item, model));
  return out;
}

std::string bytes_of_hex(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; };
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    out += static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
  }
  return out;
}

std::string body_of(const json::Object& from, std::string_view model) {
  if (json::member(from, "raw_hex") != nullptr) return bytes_of_hex(json::text_of(from, "raw_hex"));
  if (json::member(from, "raw") != nullptr) return json::text_of(from, "raw");
  const json::Value* body = json::member(from, "body");
  return body != nullptr ? json::to_text(filled(*body, model)) : std::string();
}

RequestCase read_case(const json::Object& from, std::string_view model) {
  RequestCase one;
  one.id = json::text_of(from, "id");
  one.why = json::text_of(from, "why");
  const bool has_body = json::member(from, "body") != nullptr ||
                        json::member(from, "raw") != nullptr ||
                        json::member(from, "raw_hex") != nullptr;
  one.method = json::text_of(from, "method", has_body ? "POST" : "GET");
  one.target = json::text_of(from, "path", "/v1/chat/completions");
  constexpr std::string_view kModel = "$MODEL";
  if (const auto at = one.target.find(kModel); at != std::string::npos) {
    one.target.replace(at, kModel.size(), model);
  }
  if (const json::Value* headers = json::member(from, "headers"); headers && headers->is_object()) {
    for (const auto& [name, value] : headers->get_object()) {
      if (value.is_string()) one.headers.emplace_back(name, std::string(value.get_string()));
    }
  }
  one.body = body_of(from, model);
  if (const json::Value* expect = json::member(from, "expect"); expect != nullptr) {
    one.expect = json::to_text(filled(*expect, model));
  }
  one.stream = json::flag_of(from, "stream");
  one.ours = json::flag_of(from, "ours");
  return one;
}

std::string cut(std::string text) {
  if (text.size() <= kShownMax) return text;
  std::size_t end = kShownMax;  // not inside a character
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "…";
}

// "choices.0.message.content"
const json::Value* dig(const json::Value& from, std::string_view path) {
  const json::Value* at = &from;
  while (at != nullptr && !path.empty()) {
    const auto dot = path.find('.');
    const std::string_view key = path.substr(0, dot);
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
    if (at->is_array()) {
      const bool number = !key.empty() && key.size() < 9 &&
                          std::ranges::all_of(key, [](char c) { return c >= '0' && c <= '9'; });
      const std::size_t index = number ? std::stoul(std::string(key)) : at->get_array().size();
      at = index < at->get_array().size() ? &at->get_array()[index] : nullptr;
    } else {
      at = at->is_object() ? json::member(at->get_object(), key) : nullptr;
    }
  }
  return at;
}

bool same(const json::Value& a, const json::Value& b) {
  if (a.is_number() && b.is_number()) return a.to_number<double>() == b.to_number<double>();
  return a == b;
}

// As the notation calls types, which are Python's.
std::string_view type_of(const json::Value& value) {
  switch (value.kind()) {
    case boost::json::kind::null: return "null";
    case boost::json::kind::bool_: return "bool";
    case boost::json::kind::string: return "str";
    case boost::json::kind::array: return "list";
    case boost::json::kind::object: return "dict";
    case boost::json::kind::double_: return "float";
    default: return "int";
  }
}

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  return text;
}

std::string as_text(const json::Value& value) {
  return value.is_string() ? std::string(value.get_string()) : json::to_text(value);
}

bool holds_one(const json::Value& value, std::string_view word, const json::Value& bound) {
  if (word == "in") {
    return bound.is_array() && std::ranges::any_of(bound.get_array(), [&](const json::Value& one) {
             return same(value, one);
           });
  }
  if (word == "type") return type_of(value) == as_text(bound);
  if (word == "contains") {
    return lower(as_text(value)).find(lower(as_text(bound))) != std::string::npos;
  }
  if (word == "not_contains") return as_text(value).find(as_text(bound)) == std::string::npos;
  if (!value.is_number() || !bound.is_number()) return false;
  const double number = value.to_number<double>();
  const double limit = bound.to_number<double>();
  return word == "min" ? number >= limit : word == "max" && number <= limit;
}

// `value` null: there is none at that path.
bool holds(const json::Value* value, const json::Value& wanted) {
  if (!wanted.is_object()) return value != nullptr && same(*value, wanted);
  const json::Object& words = wanted.get_object();
  if (json::flag_of(words, "absent")) {
    return value == nullptr || value->is_null() ||
           (value->is_array() && value->get_array().empty());
  }
  if (value == nullptr) return false;
  return std::ranges::all_of(
      words, [&](const auto& word) { return holds_one(*value, word.key(), word.value()); });
}

std::string unmet_json(const json::Object& wanted, std::string_view body) {
  const auto answer = json::parse(body, kLimits);
  if (!answer) return cut(fmt::format("the answer is not JSON: {}", body));
  for (const auto& [path, condition] : wanted) {
    const json::Value* value = dig(*answer, path);
    if (holds(value, condition)) continue;
    return fmt::format("{} is {}, wanted {}", std::string_view(path),
                       value != nullptr ? cut(json::to_text(*value)) : "missing",
                       cut(json::to_text(condition)));
  }
  return {};
}

// What the events of an answer come to.
struct Events {
  bool done = false;
  std::string finish;
  std::string text;
  int usages = 0;
  bool adds_up = true;
  std::string unreadable;
};

void add_chunk(Events& events, const json::Value& chunk) {
  const json::Value* choices = dig(chunk, "choices");
  if (choices != nullptr && choices->is_array()) {
    for (const json::Value& choice : choices->get_array()) {
      const json::Value* content = dig(choice, "delta.content");
      if (content != nullptr && content->is_string()) {
        events.text += std::string_view(content->get_string());
      }
      const json::Value* finish = dig(choice, "finish_reason");
      if (finish != nullptr && finish->is_string()) events.finish = as_text(*finish);
    }
  }
  const json::Value* usage = dig(chunk, "usage");
  if (usage == nullptr || !usage->is_object()) return;
  ++events.usages;
  double sum = 0;
  for (const char* part : {"prompt_tokens", "completion_tokens"}) {
    const json::Value* count = dig(*usage, part);
    if (count != nullptr && count->is_number()) sum += count->to_number<double>();
  }
  const json::Value* total = dig(*usage, "total_tokens");
  events.adds_up = total != nullptr && total->is_number() && total->to_number<double>() == sum;
}

Events read_events(std::string_view body) {
  Events events;
  for (const std::string_view data : stream_events(body)) {
    events.done = data == "[DONE]";
    if (events.done) continue;
    const auto chunk = json::parse(data, kLimits);
    if (!chunk) {
      events.unreadable = cut(fmt::format("an event is not JSON: {}", data));
      return events;
    }
    add_chunk(events, *chunk);
  }
  return events;
}

const json::Array& list_of(const json::Object& object, std::string_view name) {
  static const json::Array nothing;
  const json::Value* value = json::member(object, name);
  return value != nullptr && value->is_array() ? value->get_array() : nothing;
}

std::string unmet_stream(const json::Object& expect, std::string_view body) {
  const Events events = read_events(body);
  if (!events.unreadable.empty()) return events.unreadable;
  if (const json::Value* done = json::member(expect, "done"); done && done->is_bool()) {
    if (done->get_bool() && !events.done) return "the stream does not end with [DONE]";
    if (!done->get_bool() && events.done) return "the stream ends with [DONE]";
  }
  const json::Array& finishes = list_of(expect, "finish");
  const bool ended = std::ranges::any_of(
      finishes, [&](const json::Value& one) { return as_text(one) == events.finish; });
  if (!finishes.empty() && !ended) {
    return fmt::format("finish_reason is \"{}\", wanted {}", events.finish,
                       json::to_text(*json::member(expect, "finish")));
  }
  for (const json::Value& part : list_of(expect, "text_contains")) {
    if (events.text.find(as_text(part)) == std::string::npos) {
      return cut(fmt::format("the text lacks \"{}\": {}", as_text(part), events.text));
    }
  }
  for (const json::Value& part : list_of(expect, "text_not_contains")) {
    if (events.text.find(as_text(part)) != std::string::npos) {
      return cut(fmt::format("the text has \"{}\": {}", as_text(part), events.text));
    }
  }
  if (!json::flag_of(expect, "usage")) return {};
  if (events.usages != 1) return fmt::format("usage came {} times, wanted once", events.usages);
  return events.adds_up ? "" : "usage does not add up to total_tokens";
}

std::string unmet_status(const json::Object& expect, const CaseAnswer& answer) {
  std::string wanted;
  for (const json::Value& one : list_of(expect, "status")) {
    if (one.is_int64() && one.get_int64() == answer.status) return {};
    wanted += (wanted.empty() ? "" : " or ") + json::to_text(one);
  }
  return cut(fmt::format("status {}, wanted {}: {}", answer.status, wanted, answer.body));
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text, at);
    if (length == 0) return false;
    at += length;
  }
  return text.find(kReplacement) == std::string_view::npos;
}

}  // namespace

Result<std::vector<RequestCase>> read_request_cases(std::string_view json, std::string_view model) {
  const auto list = json::parse(json, kLimits);
  if (!list) return fail(list.error());
  if (!list->is_array()) return fail(Code::InvalidArgument, "request cases are a list");
  std::vector<RequestCase> cases;
  for (const json::Value& item : list->get_array()) {
    if (!item.is_object()) return fail(Code::InvalidArgument, "a request case is an object");
    cases.push_back(read_case(item.get_object(), model));
    if (cases.back().id.empty() || cases.back().expect.empty()) {
      return fail(Code::InvalidArgument, "a request case needs its id and what it expects");
    }
  }
  return cases;
}

std::string find_unmet(const RequestCase& one, const CaseAnswer& answer) {
  const auto expect = json::parse_object(one.expect, kLimits);
  if (!expect) return "the case itself cannot be read: " + expect.error().message;
  std::string unmet = unmet_status(*expect, answer);
  if (!unmet.empty()) return unmet;
  const json::Value* limit = json::member(*expect, "max_s");
  const double most =
      limit != nullptr && limit->is_number() ? limit->to_number<double>() : kSecondsMax;
  if (answer.seconds > most) {
    return fmt::format("the answer took {:.1f} s, wanted {:.0f} at most", answer.seconds, most);
  }
  if (json::flag_of(*expect, "utf8") && !is_utf8(answer.body))
    return "the answer is not whole UTF-8";
  if (one.stream && answer.status == 200) return unmet_stream(*expect, answer.body);
  const json::Value* wanted = json::member(*expect, "json");
  return wanted != nullptr && wanted->is_object() ? unmet_json(wanted->get_object(), answer.body)
                                                  : std::string();
}

}  // namespace flotilla::api
