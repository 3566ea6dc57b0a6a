#include "client/asker.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <fmt/format.h>

#include "api/error_body.h"
#include "api/json_text.h"

namespace flotilla::client {
namespace {

constexpr Duration kBeforeTheAnswer = std::chrono::milliseconds(100);
constexpr int kReadsMidway = 3;

using Finished = boost::asio::experimental::channel<void(boost::system::error_code)>;

Awaitable<void> ask_into(Asker& asker, Question question, Heard& heard, Finished& finished) {
  heard = co_await asker.ask(std::move(question));
  finished.try_send(boost::system::error_code{});
}

Awaitable<void> then_tell(Awaitable<void> work, Finished& finished) {
  co_await std::move(work);
  finished.try_send(boost::system::error_code{});
}

}  // namespace

Asker::Asker(Executor executor, http::Client& client, Settings settings, const Clock& clock)
    : executor_(std::move(executor)),
      client_(client),
      settings_(std::move(settings)),
      clock_(clock) {}

http::Request Asker::make_request(std::string method, std::string target, std::string body) const {
  http::Request request;
  request.method = std::move(method);
  request.target = std::move(target);
  request.body = std::move(body);
  request.headers.set("Content-Type", "application/json");
  if (!settings_.key.empty()) request.headers.set("Authorization", "Bearer " + settings_.key);
  // A connection of its own: one that a server is about to close would count as its failure.
  request.headers.set("Connection", "close");
  return request;
}

Task<http::Response> Asker::fetch(http::Request request) const {
  auto answer = co_await client_.fetch(std::move(request), settings_.limit);
  co_return answer;
}

Task<int> Asker::status_of(http::Request request) const {
  const auto stream = co_await client_.open(std::move(request), settings_.limit);
  if (!stream) co_return fail(stream.error());
  co_return (*stream)->status();
}

http::Request Asker::chat_request(const Question& question) const {
  return make_request(
      "POST", "/v1/chat/completions",
      fmt::format(R"({{"model":{},"messages":[{{"role":"user","content":{}}}],"max_tokens":{},)"
                  R"("temperature":{},"seed":{},"stream":{}{}}})",
                  api::json_string(settings_.model), api::json_string(question.text),
                  question.max_tokens, question.temperature, question.seed, question.stream,
                  question.more));
}

Awaitable<Heard> Asker::ask(Question question) {
  const Instant begin = clock_.now();
  http::Request request = chat_request(question);
  const auto answer = co_await client_.fetch(std::move(request), settings_.limit);
  Heard heard;
  heard.ms = to_ms(clock_.now() - begin);
  if (!answer) {
    heard.answer.fault = answer.error().message;
  } else if (answer->status != 200) {
    heard.answer.fault = fmt::format("status {}: {}", answer->status,
                                     api::parse_error_body(answer->status, answer->body).message);
  } else {
    heard.answer = question.stream ? api::read_streamed_chat(answer->body)
                                   : api::read_whole_chat(answer->body);
  }
  co_return heard;
}

Awaitable<std::vector<Heard>> Asker::ask_at_once(std::vector<Question> questions) {
  std::vector<Heard> heard(questions.size());
  Finished finished(executor_, questions.size());
  for (std::size_t i = 0; i < questions.size(); ++i) {
    boost::asio::co_spawn(executor_, ask_into(*this, questions[i], heard[i], finished),
                          [](std::exception_ptr) {});
  }
  for (std::size_t i = 0; i < questions.size(); ++i) co_await finished.async_receive(kAwait);
  co_return heard;
}

Awaitable<void> Asker::ask_and_leave(Question question, int clients, Leave when) {
  question.stream = when != Leave::BeforeTheWholeAnswer;
  Finished finished(executor_, static_cast<std::size_t>(clients));
  for (int i = 0; i < clients; ++i) {
    question.seed = i;
    boost::asio::co_spawn(executor_, then_tell(leave(question, when), finished),
                          [](std::exception_ptr) {});
  }
  for (int i = 0; i < clients; ++i) co_await finished.async_receive(kAwait);
}

// Dropping the stream closes the connection, as does an answer that is not waited for.
Awaitable<void> Asker::leave(Question question, Leave when) {
  const bool waits = when == Leave::AtItsHead || when == Leave::Midway;
  http::Request request = chat_request(question);
  const auto stream =
      co_await client_.open(std::move(request), waits ? settings_.limit : kBeforeTheAnswer);
  if (!stream || when != Leave::Midway) co_return;
  for (int i = 0; i < kReadsMidway; ++i) {
    const auto bytes = co_await (*stream)->read(settings_.limit);
    if (!bytes || bytes->empty()) break;
  }
}

}  // namespace flotilla::client
