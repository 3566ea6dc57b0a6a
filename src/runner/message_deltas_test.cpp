#include "runner/message_deltas.h"

#include <cctype>

#include <gtest/gtest.h>

namespace flotilla::runner {
namespace {

// Reads "thought|content|name:arguments", each part as far as it is there.
class BarParser final : public engine::AnswerParser {
 public:
  engine::ParsedAnswer parse(std::string_view text, bool whole) const override {
    engine::ParsedAnswer answer;
    const std::size_t first = text.find('|');
    answer.reasoning_content = text.substr(0, first);
    if (first == text.npos) return answer;
    text.remove_prefix(first + 1);
    const std::size_t second = text.find('|');
    answer.content = text.substr(0, second);
    if (second == text.npos) return answer;
    text.remove_prefix(second + 1);
    const std::size_t colon = text.find(':');
    answer.tool_calls.emplace_back();
    if (colon == text.npos) return answer;  // no name yet
    answer.tool_calls[0].name = text.substr(0, colon);
    answer.tool_calls[0].arguments = text.substr(colon + 1);
    if (whole) answer.tool_calls[0].arguments += '.';
    return answer;
  }
};

struct Sum {
  std::string reasoning, content, id, name, arguments;
  int named = 0;

  void add(const api::ChatDelta& delta) {
    reasoning += delta.reasoning_content;
    content += delta.content;
    for (const api::ToolCallDelta& call : delta.tool_calls) {
      id += call.id;
      name += call.name;
      named += call.name.empty() ? 0 : 1;
      arguments += call.arguments;
    }
  }
};

const std::string kText = "hm|well|f:{1}";

TEST(MessageDeltas, AddUpToTheMessageHoweverTheTextIsCut) {
  for (std::size_t step = 1; step <= kText.size(); ++step) {
    MessageDeltas deltas(std::make_shared<BarParser>(), "r/0");
    Sum sum;
    for (std::size_t at = 0; at < kText.size(); at += step) {
      sum.add(deltas.take(kText.substr(at, step), at + step >= kText.size()));
    }
    EXPECT_EQ(sum.reasoning + '|' + sum.content + '|' + sum.name + ':' + sum.arguments,
              kText + '.');
    EXPECT_EQ(sum.named, 1);
    EXPECT_EQ(sum.id.size(), 9U);
    EXPECT_TRUE(deltas.has_calls());
  }
}

TEST(MessageDeltas, GoOnBehindWhatWasTakenInSilence) {
  for (std::size_t given = 0; given <= kText.size(); ++given) {
    MessageDeltas first(std::make_shared<BarParser>(), "r/0");
    MessageDeltas second(std::make_shared<BarParser>(), "r/0");
    Sum sum;
    sum.add(first.take(kText.substr(0, given), false));
    second.take(kText.substr(0, given), false);
    sum.add(second.take(kText.substr(given), true));
    EXPECT_EQ(sum.reasoning + '|' + sum.content + '|' + sum.name + ':' + sum.arguments,
              kText + '.');
    EXPECT_EQ(sum.id.size(), 9U) << given;
  }
}

TEST(MessageDeltas, IdsAreTheRequestsOwn) {
  const auto id = [](const std::string& name) {
    MessageDeltas deltas(std::make_shared<BarParser>(), name);
    return deltas.take("||f:", true).tool_calls.at(0).id;
  };
  EXPECT_EQ(id("r/0"), id("r/0"));
  EXPECT_NE(id("r/0"), id("r/1"));
  for (const char c : id("r/0")) EXPECT_TRUE(std::isalnum(static_cast<unsigned char>(c)));
}

// A parser that changes its mind is not followed, and nothing is shown twice.
class MindChanger final : public engine::AnswerParser {
 public:
  engine::ParsedAnswer parse(std::string_view text, bool whole) const override {
    return {.content = whole ? "other" : std::string(text)};
  }
};

TEST(MessageDeltas, WhatWasShownStays) {
  MessageDeltas deltas(std::make_shared<MindChanger>(), "r/0");
  EXPECT_EQ(deltas.take("some", false).content, "some");
  EXPECT_TRUE(deltas.take(" text", true).empty());
}

// Reads "{" as a call, until something follows.
class CallDropper final : public engine::AnswerParser {
 public:
  engine::ParsedAnswer parse(std::string_view text, bool) const override {
    if (text == "{") return {.tool_calls = {{.name = "f"}}};
    return {.content = std::string(text)};
  }
};

TEST(MessageDeltas, ACallThatWasShownIsNotShownAsTextToo) {
  MessageDeltas deltas(std::make_shared<CallDropper>(), "r/0");
  EXPECT_EQ(deltas.take("{", false).tool_calls.size(), 1U);
  EXPECT_TRUE(deltas.take("}", true).empty());
}

}  // namespace
}  // namespace flotilla::runner
