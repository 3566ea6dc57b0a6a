#include <string>
#include <utility>

#include "api/anthropic.h"
#include "api/chat_assembler.h"
#include "api/chat_pieces.h"
#include "api/completions.h"
#include "api/error_body.h"
#include "api/foreign.h"
#include "api/json_answer.h"
#include "api/responses.h"
#include "api/runner_protocol.h"
#include "base/check.h"
#include "fuzz/target.h"
#include "http/sse.h"

// Answers on their way from a replica to a client.
namespace flotilla::fuzz {
namespace {

constexpr int kVocabulary = 1000;

std::vector<std::string> blocks_of(std::string_view stream, Cuts* cuts, bool& fits, bool& ended) {
  std::vector<std::string> blocks;
  http::SseSplitter splitter;
  fits = true;
  const auto keep = [&blocks](std::string_view block) { blocks.emplace_back(block); };
  while (!stream.empty() && fits) {
    const std::string_view piece =
        cuts != nullptr ? cuts->take(stream) : std::exchange(stream, std::string_view());
    fits = splitter.feed(piece, keep);
  }
  ended = splitter.empty();
  return blocks;
}

// What a relay does with a block.
void read_block(std::string_view block, api::ChatAssembler& assembler) {
  const std::string_view line = block.substr(0, block.find('\n'));
  if (const auto comment = api::parse_token_comment(line)) {
    std::string again;
    api::append_token_comment(again, comment->choice, comment->ids);
    CHECK(again.ends_with('\n'));
    again.pop_back();
    const auto second = api::parse_token_comment(again);
    CHECK(second && second->choice == comment->choice && second->ids == comment->ids);
  }
  (void)api::parse_usage_comment(line);
  (void)api::finished_choice(block);
  (void)assembler.feed(http::sse_data(block));
}

void sse(std::string_view bytes) {
  Cuts cuts(take_byte(bytes));
  bool fits = true, ended = true, cut_fits = true, cut_ended = true;
  const auto whole = blocks_of(bytes, nullptr, fits, ended);
  const auto cut = blocks_of(bytes, &cuts, cut_fits, cut_ended);
  CHECK(fits == cut_fits);
  if (fits) CHECK(whole == cut && ended == cut_ended);
  std::string joined;
  for (const std::string& block : whole) joined += block;
  CHECK(bytes.starts_with(joined));
  if (fits) CHECK(ended == (joined.size() == bytes.size()));
  api::ChatAssembler assembler;
  for (const std::string& block : whole) read_block(block, assembler);
  CHECK(api::json::parse_answer_object(assembler.answer()));
}

void resume(std::string_view bytes) {
  const auto resume = api::parse_resume(bytes, kVocabulary);
  if (!resume) return;
  for (const auto& [choice, ids] : resume->tokens) {
    CHECK(choice >= 0 && choice < 128);
    for (const std::int32_t id : ids) CHECK(id >= 0 && id < kVocabulary);
  }
  const auto again = api::parse_resume(api::resume_json(*resume), kVocabulary);
  CHECK(again && again->tokens == resume->tokens && again->finished == resume->finished);
}

// A line each: data of the events of another engine.
void foreign_answer(std::string_view bytes) {
  api::ForeignChunks chunks({.id = "chatcmpl-1", .created = 1, .model = "m"},
                            {.node = "n", .replica = "n"},
                            {.usage = take_byte(bytes) % 2 == 0, .cached = true});
  while (!bytes.empty()) {
    const std::string_view data = take_line(bytes);
    const auto out = chunks.rewrite(data, 1);
    if (!out) CHECK(!out.error().message.empty());
  }
}

Result<api::FormRequest> form_of(std::uint8_t which) {
  switch (which % 6) {
    case 0: return api::parse_completion_request(R"({"model":"m","prompt":"a","stream":true})");
    case 1:
      return api::parse_completion_request(R"({"model":"m","prompt":["a","b"],"echo":true,"n":2})");
    case 2: return api::parse_responses_request(R"({"model":"m","input":"a","stream":true})");
    case 3: return api::parse_responses_request(R"({"model":"m","input":"a"})");
    case 4:
      return api::parse_messages_request(
          R"({"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"a"}]})");
    default:
      return api::parse_messages_request(
          R"({"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"}]})");
  }
}

// A line each: data of a chat stream's events, which become another form's; the last also as a
// whole answer.
void form_answer(std::string_view bytes) {
  const auto which = take_byte(bytes);
  auto streamed = form_of(which);
  auto whole = form_of(which);
  CHECK(streamed && whole);
  std::string_view last;
  while (!bytes.empty()) {
    last = take_line(bytes);
    (void)streamed->answer->event(last);
  }
  (void)streamed->answer->take_kept();
  CHECK(api::json::parse_answer_object(whole->answer->answer(last)));
  (void)whole->answer->take_kept();
}

void error_body(std::string_view bytes) {
  const Error error = api::parse_error_body(400 + take_byte(bytes), bytes);
  CHECK(api::json::parse_answer_object(api::openai_error_body(error)));
  CHECK(api::json::parse_answer_object(api::problem_body(error)));
  CHECK(api::json::parse_answer_object(api::anthropic_error_body(error)));
}

}  // namespace

std::vector<Target> answer_targets() {
  return {{"sse", sse},
          {"resume", resume},
          {"foreign_answer", foreign_answer},
          {"form_answer", form_answer},
          {"error_body", error_body}};
}

}  // namespace flotilla::fuzz
