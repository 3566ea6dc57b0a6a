#include "client/behaviours.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "api/json_text.h"
#include "base/json_text.h"
#include "base/random.h"
#include "client/leaving.h"

namespace flotilla::client {
namespace {

constexpr int kTokens = 40;
const char* const kStory = "Write a story about a ship and its crew.";
const char* const kWithUsage = R"(,"stream_options":{"include_usage":true})";

Question question(double temperature, int seed) {
  return {.text = kStory, .max_tokens = kTokens, .temperature = temperature, .seed = seed};
}
Question streamed(Question one) {
  one.stream = true;
  return one;
}

std::string as_json(const std::string& text) { return api::json_string(text); }

// The first of two answers that is not as it should be, or where they differ.
std::string difference(const Heard& a, const Heard& b) {
  for (const Heard* one : {&a, &b}) {
    if (!one->answer.fault.empty()) return one->answer.fault;
  }
  if (a.answer.text != b.answer.text) {
    return fmt::format("{} and {}", as_json(a.answer.text), as_json(b.answer.text));
  }
  if (a.answer.finish_reason == b.answer.finish_reason) return {};
  return fmt::format("finish_reason {} and {}", a.answer.finish_reason, b.answer.finish_reason);
}

Awaitable<std::string> streams_have_their_form(Asker& asker) {
  Question one = streamed(question(0, 1));
  const Heard heard = co_await asker.ask(std::move(one));
  co_return heard.answer.fault;
}

Awaitable<std::string> streams_equal_whole_answers(Asker& asker) {
  Question one = question(0.8, 7);
  const Heard whole = co_await asker.ask(one);
  one.stream = true;
  const Heard stream = co_await asker.ask(std::move(one));
  co_return difference(whole, stream);
}

std::string usage_fault(const Heard& heard) {
  const api::ChatSeen& seen = heard.answer;
  if (!seen.fault.empty()) return seen.fault;
  if (!seen.has_usage) return "there is no usage";
  const std::int64_t made = seen.usage.completion_tokens;
  const bool fits = seen.finish_reason == "length" ? made == kTokens : made <= kTokens;
  if (seen.usage.prompt_tokens > 0 && made > 0 && fits &&
      seen.usage.prompt_tokens + made == seen.total_tokens)
    return {};
  return fmt::format("{} + {} tokens of {} at most, total_tokens {}, finish_reason {}",
                     seen.usage.prompt_tokens, made, kTokens, seen.total_tokens,
                     seen.finish_reason);
}

Awaitable<std::string> usage_adds_up(Asker& asker) {
  Question one = question(0, 1);
  const Heard whole = co_await asker.ask(one);
  one.stream = true;
  one.more = kWithUsage;
  const Heard stream = co_await asker.ask(std::move(one));
  for (const Heard* heard : {&whole, &stream}) {
    std::string fault = usage_fault(*heard);
    if (!fault.empty()) co_return fault;
  }
  if (whole.answer.total_tokens == stream.answer.total_tokens) co_return std::string();
  co_return fmt::format("a whole answer has {} tokens, the same as a stream {}",
                        whole.answer.total_tokens, stream.answer.total_tokens);
}

Awaitable<std::string> a_seed_repeats_an_answer(Asker& asker) {
  Question one = question(1, 11);
  const Heard first = co_await asker.ask(one);
  const Heard second = co_await asker.ask(std::move(one));
  co_return difference(first, second);
}

Awaitable<std::string> another_seed_is_another_answer(Asker& asker) {
  std::set<std::string> texts;
  for (int seed = 1; seed <= 4; ++seed) {
    Question one = question(1, seed);
    const Heard heard = co_await asker.ask(std::move(one));
    if (!heard.answer.fault.empty()) co_return heard.answer.fault;
    texts.insert(heard.answer.text);
  }
  co_return texts.size() > 1 ? std::string() : "four seeds gave the same answer";
}

Awaitable<std::string> seeds_hold_beside_other_users(Asker& asker) {
  std::vector<Question> all{question(1, 21)};
  const Heard alone = co_await asker.ask(all.front());
  for (int other = 1; other <= 5; ++other) {
    all.push_back(streamed({.text = fmt::format("Number {}: tell me about the sea.", other),
                            .max_tokens = kTokens + 10 * other,
                            .temperature = 1,
                            .seed = other}));
  }
  const std::vector<Heard> heard = co_await asker.ask_at_once(std::move(all));
  co_return difference(alone, heard.front());
}

// A piece from the middle of `text`, cut without regard to words, so that tokens do not end with
// it.
std::string piece_of(const std::string& text) {
  constexpr std::size_t kCharacters = 7;
  std::size_t begin = 0;
  while (begin < text.size() / 3) begin += std::max<std::size_t>(1, character_length(text, begin));
  std::size_t end = begin;
  for (std::size_t i = 0; i < kCharacters && end < text.size(); ++i) {
    end += std::max<std::size_t>(1, character_length(text, end));
  }
  return text.substr(begin, end - begin);
}

Awaitable<std::string> stop_strings_cut(Asker& asker, bool stream) {
  Question one = question(0, 1);
  const Heard full = co_await asker.ask(one);
  if (!full.answer.fault.empty()) co_return full.answer.fault;
  const std::string stop = piece_of(full.answer.text);
  if (stop.empty()) co_return "the answer without a stop string is empty";
  one.stream = stream;
  one.more = R"(,"stop":[)" + as_json(stop) + "]";
  const Heard heard = co_await asker.ask(std::move(one));
  if (!heard.answer.fault.empty()) co_return heard.answer.fault;
  const std::string wanted = full.answer.text.substr(0, full.answer.text.find(stop));
  if (heard.answer.text != wanted) {
    co_return fmt::format("with the stop string {}: {}, wanted {}", as_json(stop),
                          as_json(heard.answer.text), as_json(wanted));
  }
  if (heard.answer.finish_reason == "stop") co_return std::string();
  co_return "finish_reason is " + heard.answer.finish_reason;
}

Awaitable<std::string> stop_strings_cut_whole_answers(Asker& asker) {
  return stop_strings_cut(asker, false);
}
Awaitable<std::string> stop_strings_cut_streams(Asker& asker) {
  return stop_strings_cut(asker, true);
}

// A schema that leaves no choice makes any model write characters of several tokens.
Awaitable<std::string> characters_of_several_tokens_stay_whole(Asker& asker) {
  const std::string text = "👩‍👩‍👧‍👦 日本語 العربية 🏳️‍🌈";
  Question one{.text = "Write what the schema says.", .max_tokens = 200};
  one.more = fmt::format(
      R"(,"response_format":{{"type":"json_schema","json_schema":{{"name":"x","strict":true,)"
      R"("schema":{{"type":"object","properties":{{"a":{{"type":"string","enum":[{}]}}}},)"
      R"("required":["a"],"additionalProperties":false}}}}}})",
      as_json(text));
  const Heard whole = co_await asker.ask(one);
  one.stream = true;
  const Heard stream = co_await asker.ask(std::move(one));
  std::string differ = difference(whole, stream);
  if (!differ.empty()) co_return differ;
  const bool there = whole.answer.text.find(text) != std::string::npos;
  const bool escaped = whole.answer.text.find("\\u") != std::string::npos;
  co_return there || escaped ? std::string() : "the answer is " + as_json(whole.answer.text);
}

// Cut anywhere, also in the middle of a character's tokens.
Awaitable<std::string> a_shorter_answer_is_the_begin_of_a_longer_one(Asker& asker) {
  std::string before;
  for (int tokens = 1; tokens <= 8; ++tokens) {
    Question one{.text = "Repeat: 👩‍👩‍👧‍👦🏳️‍🌈日本語",
                 .max_tokens = tokens};
    const Heard heard = co_await asker.ask(std::move(one));
    if (!heard.answer.fault.empty()) co_return heard.answer.fault;
    if (!heard.answer.text.starts_with(before)) {
      co_return fmt::format("{} tokens give {}, one less {}", tokens, as_json(heard.answer.text),
                            as_json(before));
    }
    before = heard.answer.text;
  }
  co_return std::string();
}

Awaitable<std::string> answers_stay_apart(Asker& asker) {
  constexpr int kUsers = 6;
  std::vector<std::string> canaries;
  std::vector<Question> questions;
  for (int user = 0; user < kUsers; ++user) {
    canaries.push_back(random_hex(8));
    questions.push_back(
        streamed({.text = fmt::format("Repeat this word ten times: {}", canaries.back()),
                  .max_tokens = 2 * kTokens,
                  .temperature = 0.5,
                  .seed = user}));
  }
  const std::vector<Heard> heard = co_await asker.ask_at_once(std::move(questions));
  for (std::size_t user = 0; user < heard.size(); ++user) {
    if (!heard[user].answer.fault.empty()) co_return heard[user].answer.fault;
    for (std::size_t other = 0; other < canaries.size(); ++other) {
      const bool shown = heard[user].answer.text.find(canaries[other]) != std::string::npos;
      if (shown && other != user) co_return "an answer shows a word that only another user said";
    }
  }
  co_return std::string();
}

}  // namespace

const std::vector<Behaviour>& behaviours() {
  static const std::vector<Behaviour> all{
      {"stream-form", "SDKs read streams by it", streams_have_their_form},
      {"stream-equals-whole", "one answer, two ways to get it", streams_equal_whole_answers},
      {"usage-adds-up", "bills are made from it", usage_adds_up},
      {"seed-repeats", "the same request, the same answer", a_seed_repeats_an_answer},
      {"seed-is-used", "", another_seed_is_another_answer},
      {"seed-beside-others", "whoever else is answered meanwhile", seeds_hold_beside_other_users},
      {"stop-across-tokens", "cut where it begins, and not shown", stop_strings_cut_whole_answers},
      {"stop-across-tokens-streamed", "", stop_strings_cut_streams},
      {"utf8-in-pieces", "a character may be several tokens",
       characters_of_several_tokens_stay_whole},
      {"utf8-cut-short", "max_tokens may end within a character",
       a_shorter_answer_is_the_begin_of_a_longer_one},
      {"answers-stay-apart", "nobody reads what another one asked", answers_stay_apart},
      {"leave-before-answer", "who goes away gives the place back", leave_before_the_answer},
      {"leave-at-head", "", leave_at_the_head},
      {"leave-midway", "", leave_midway},
      {"leave-whole-answer", "also where nothing is streamed", leave_before_the_whole_answer},
      {"max-tokens-beyond-context", "served or refused, at once", ask_for_more_than_the_context},
  };
  return all;
}

}  // namespace flotilla::client
