#include "runner/test_service.h"

// A lost replica's answer goes on elsewhere exactly after what the client has.
namespace flotilla::runner {
namespace {

class ResumeTest : public ServiceTest {
 protected:
  // What a gateway knows after the first `count` blocks.
  static api::Resume resume_after(const Streamed& s, std::size_t count,
                                  std::map<int, std::string>& shown) {
    api::Resume resume;
    for (std::size_t i = 0; i < count; ++i) {
      const std::string& block = s.blocks[i];
      if (const auto comment = api::parse_token_comment(block.substr(0, block.find('\n')))) {
        auto& ids = resume.tokens[comment->choice];
        ids.insert(ids.end(), comment->ids.begin(), comment->ids.end());
      }
      if (const auto choice = api::finished_choice(block)) resume.finished.insert(*choice);
      const auto chunk = api::json::parse_object(http::sse_data(block));
      if (!chunk || chunk->at("choices").as_array().empty()) continue;
      const auto& choice = chunk->at("choices").at(0);
      const int index = static_cast<int>(choice.at("index").as_int64());
      resume.tokens[index];  // its role was shown
      const auto& delta = choice.at("delta").as_object();
      if (delta.contains("content")) shown[index] += delta.at("content").as_string();
    }
    return resume;
  }

  http::Request resumed(const std::string& body, const api::Resume& resume) {
    const std::string json = api::resume_json(resume);
    http::Headers headers = protocol();
    headers.set("Flotilla-Resume-Bytes", std::to_string(json.size()));
    return request(json + body, headers);
  }

  void every_cut_gives_the_same_rest(const std::string& fields) {
    const Streamed whole = stream(request(body(fields), protocol()));
    ASSERT_TRUE(whole.done && whole.usage);
    for (std::size_t cut = 0; cut < whole.blocks.size(); ++cut) {
      std::map<int, std::string> text;
      const api::Resume resume = resume_after(whole, cut, text);
      const Streamed rest = stream(resumed(body(fields), resume));
      ASSERT_TRUE(rest.done) << "cut " << cut << " of " << fields;
      for (const auto& [choice, part] : rest.text) text[choice] += part;
      EXPECT_EQ(text, whole.text) << "cut " << cut << " of " << fields;
      for (const auto& [choice, reason] : whole.finish) {
        if (resume.finished.contains(choice)) {
          EXPECT_FALSE(rest.finish.contains(choice)) << "finished twice, cut " << cut;
        } else {
          EXPECT_EQ(rest.finish.at(choice), reason) << "cut " << cut << " of " << fields;
        }
      }
      ASSERT_TRUE(rest.usage);
      EXPECT_EQ(rest.usage->usage.completion_tokens, whole.usage->usage.completion_tokens) << cut;
      EXPECT_EQ(rest.usage->usage.prompt_tokens, whole.usage->usage.prompt_tokens);
      if (resume.finished.size() < whole.finish.size()) {
        EXPECT_NE(rest.bytes.find(R"("resumed":true)"), std::string::npos) << cut;
      }
    }
  }
};

TEST_F(ResumeTest, EveryCutGivesTheSameRest) {
  begin();
  every_cut_gives_the_same_rest(R"("max_tokens":40)");
  every_cut_gives_the_same_rest(R"("max_tokens":25,"n":2,"stream_options":{"include_usage":true})");
}

TEST_F(ResumeTest, StopStringsHeldBackAndPenaltiesGoOnWhereTheyWere) {
  begin();
  every_cut_gives_the_same_rest(
      R"("max_tokens":60,"stop":["qz","a b c","zzzz"],"frequency_penalty":1)");
  every_cut_gives_the_same_rest(R"("max_tokens":60,"stop":["e","th"],"presence_penalty":0.5)");
}

TEST_F(ResumeTest, TheFirstWordMayBeTheStop) {
  begin();
  const Streamed free = stream(request(body(R"("max_tokens":3,"temperature":0)"), protocol()));
  ASSERT_FALSE(free.text.at(0).empty());
  every_cut_gives_the_same_rest(R"("max_tokens":30,"temperature":0,"stop":[")" + free.text.at(0) +
                                R"("])");
}

TEST_F(ResumeTest, WhatCannotBeResumedIsRefused) {
  begin();
  const auto status = [this](const std::string& json, std::size_t bytes) {
    http::Headers headers = protocol();
    headers.set("Flotilla-Resume-Bytes", std::to_string(bytes));
    return fetch(request(json + body(""), headers)).status;
  };
  EXPECT_EQ(status("{\"0\":[97]}", 10), 200);
  EXPECT_EQ(status("{\"0\":[99999]}", 13), 400);
  EXPECT_EQ(status("{\"0\":[-1]}", 10), 400);
  EXPECT_EQ(status("{\"1\":[97]}", 10), 400) << "n is 1";
  EXPECT_EQ(status("{\"0\":[97]}", 9), 400);
  EXPECT_EQ(status("{\"0\":[97]}", 100000), 400);
}

}  // namespace
}  // namespace flotilla::runner
