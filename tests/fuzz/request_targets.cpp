#include <string>

#include "api/admin.h"
#include "api/anthropic.h"
#include "api/bench.h"
#include "api/completions.h"
#include "api/engine_request.h"
#include "api/json.h"
#include "api/json_schema.h"
#include "api/keys.h"
#include "api/login.h"
#include "api/node_spec.h"
#include "api/openai.h"
#include "api/operations.h"
#include "api/responses.h"
#include "api/tokens.h"
#include "base/check.h"
#include "base/json_text.h"
#include "fuzz/target.h"

// Bodies of requests.
namespace flotilla::fuzz {
namespace {

void check_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = flotilla::character_length(text, at);
    CHECK(length > 0);
    at += length;
  }
}

void check_error(const Error& error) { CHECK(!error.message.empty()); }

void json(std::string_view bytes) {
  const auto value = api::json::parse(bytes);
  if (!value) return check_error(value.error());
  check_utf8(bytes);  // RFC 8259: nothing else is JSON
  const std::string again = api::json::to_text(*value);
  const auto second = api::json::parse(again);
  CHECK(second);
  CHECK(*second == *value);
}

void json_schema(std::string_view bytes) {
  const auto use = take_byte(bytes) % 2 == 0 ? api::SchemaUse::Answer : api::SchemaUse::Tool;
  const auto value = api::json::parse(bytes);
  if (!value) return;
  api::json::Fault fault;
  const std::string held = api::holdable_schema(*value, "schema", use, fault);
  CHECK(held.empty() == static_cast<bool>(fault));
  if (fault) return check_error(fault.unexpected().error());
  CHECK(api::json::parse(held));
}

void chat_request(std::string_view bytes) {
  const auto request = api::parse_chat_request(bytes);
  if (!request) return check_error(request.error());
  CHECK(!request->messages.empty() || !request->raw.prompts.empty());
  CHECK(request->n >= 1 && request->n <= 128);
}

// A face of chat requests: what comes out is a chat request, or is refused as one.
void check_form(const Result<api::FormRequest>& form) {
  if (!form) return check_error(form.error());
  CHECK(form->answer != nullptr);
  CHECK(form->earlier_at <= form->chat.size());
  if (form->previous.empty()) CHECK(api::json::parse_object(form->chat));
  const auto chat = api::parse_chat_request(form->chat);
  if (!chat) check_error(chat.error());
}

void text_completion(std::string_view bytes) { check_form(api::parse_completion_request(bytes)); }
void responses(std::string_view bytes) { check_form(api::parse_responses_request(bytes)); }
void messages(std::string_view bytes) {
  check_form(api::parse_messages_request(bytes));
  check_form(api::parse_count_request(bytes));
}

void words(std::string_view bytes) {
  if (const auto request = api::parse_tokenize(bytes); !request) check_error(request.error());
  if (const auto request = api::parse_detokenize(bytes); !request) check_error(request.error());
  if (const auto name = api::read_model_name(bytes); !name) check_error(name.error());
}

// What a foreign engine gets of a client's body.
void foreign_body(std::string_view bytes) {
  api::ForeignEngine engine;
  engine.model = "theirs";
  engine.lacks = {"tools", "logprobs"};
  const api::EngineModels all{.names = {}, .all_but = true};
  for (const auto& read :
       {api::read_served_chat(bytes, all), api::read_served_vectors(bytes, all)}) {
    if (!read) {
      check_error(read.error());
      continue;
    }
    CHECK(read->for_engines.has_value());
    const auto can = api::check_engine_can(*read->for_engines, engine.lacks, "");
    if (!can) check_error(can.error());
    CHECK(api::read_model_name(api::engine_body(*read->for_engines, engine, "salt")).value_or("") ==
          "theirs");
  }
}

template <class T>
void check(const Result<T>& parsed) {
  if (!parsed) check_error(parsed.error());
}

void admin(std::string_view bytes) {
  if (const auto cluster = api::parse_cluster(bytes, "local"); cluster) {
    const auto again = api::parse_cluster(api::to_json(*cluster, api::Secrets::Kept), "local");
    CHECK(again && *again == *cluster);
  } else {
    check_error(cluster.error());
  }
  if (const auto load = api::parse_load(bytes); load) {
    const auto again = api::parse_load(api::to_json(*load));
    CHECK(again && again->same_settings(*load));
  } else {
    check_error(load.error());
  }
  if (const auto key = api::parse_key_spec(bytes); key) {
    CHECK(api::parse_key_spec(api::to_json(*key)));
  } else {
    check_error(key.error());
  }
  check(api::parse_reload(bytes));
  check(api::parse_unload(bytes));
  check(api::parse_node(bytes));
  check(api::parse_settings(bytes));
  check(api::parse_login(bytes));
  check(api::parse_bench(bytes));
}

// What a person writes may reach a command line of ssh.
void node_shorthand(std::string_view bytes) {
  const auto nodes = api::parse_node_shorthand(bytes);
  if (!nodes) return check_error(nodes.error());
  CHECK(!nodes->empty());
  for (const api::NodeSpec& node : *nodes) {
    CHECK(node.host.empty() || api::is_ssh_host(node.host));
    CHECK(node.user.empty() || api::is_ssh_user(node.user));
  }
}

}  // namespace

std::vector<Target> request_targets() {
  return {{"json", json},
          {"json_schema", json_schema},
          {"chat_request", chat_request},
          {"text_completion", text_completion},
          {"responses", responses},
          {"messages", messages},
          {"words", words},
          {"foreign_body", foreign_body},
          {"admin", admin},
          {"node_shorthand", node_shorthand}};
}

}  // namespace flotilla::fuzz
