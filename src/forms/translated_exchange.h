#pragma once

#include <memory>
#include <string>

#include "api/answer_form.h"
#include "http/server.h"
#include "http/sse.h"

namespace flotilla::forms {

// A client's exchange as the chat route sees it: the request is the chat request that it means, and
// what the route answers reaches the client in its API's own form. Whatever route it is given to
// (a gateway's or a runner's), failover and cancellation are that route's.
class TranslatedExchange final : public http::Exchange {
 public:
  // Gets an answer that is to be kept before the client has its end.
  using Keep = std::function<void(api::KeptAnswer answer)>;
  // `request`: the client's, its body already the chat request.
  TranslatedExchange(http::Exchange& client, http::Request request,
                     std::unique_ptr<api::AnswerForm> form, Keep keep);

  const http::Request& request() const override { return request_; }
  http::Request take_request() override { return std::move(request_); }
  Awaitable<bool> respond(http::Response response) override;
  Awaitable<bool> start(int status, http::Headers headers, std::string_view first) override;
  Awaitable<bool> write(std::string_view bytes) override;
  Awaitable<bool> finish(std::string_view last) override;
  void abort() override { client_.abort(); }
  bool started() const override { return client_.started(); }
  bool client_gone() const override { return client_.client_gone(); }
  void on_client_gone(std::function<void()> callback) override {
    client_.on_client_gone(std::move(callback));
  }

 private:
  // Blocks of the chat stream in the client's form. false: too long, and an error was added.
  bool translate(std::string_view bytes, std::string& out);
  void keep();

  http::Exchange& client_;
  http::Request request_;
  std::unique_ptr<api::AnswerForm> form_;
  const Keep keep_;
  http::SseSplitter splitter_;
};

}  // namespace flotilla::forms
