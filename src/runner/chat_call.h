#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "api/chat_assembler.h"
#include "api/chat_chunks.h"
#include "base/clock.h"
#include "base/task.h"
#include "http/server.h"
#include "runner/prepare.h"
#include "runner/sequences.h"
#include "runner/text_pool.h"

namespace flotilla::runner {

struct CallOptions {
  Duration keep_alive = std::chrono::seconds(10);  // head held this long, then a comment as often
  std::size_t park_above = 64 << 10;               // bytes made and not taken by the client
  std::size_t unpark_below = 32 << 10;
};

// One chat request from its tokens to its last byte. Events of its sequences become chunks at the
// end of a buffer, which a coroutine writes out; when the client takes them too slowly the
// sequences are parked. Where an answer has to be read (tools, reasoning), the text pool reads what
// has come since it last did. The I/O thread's. Destroying it ends its sequences.
class ChatCall final : public SequenceListener {
 public:
  struct Context {
    std::shared_ptr<Sequences> sequences;
    TextPool& text;
    std::shared_ptr<const TextTools> tools;
    http::Exchange& exchange;
    const Clock& clock;
    Executor executor;
    CallOptions options;
    Instant arrived;
  };

  ChatCall(const Context& context, PreparedChat chat, const CallHeaders& headers);
  ~ChatCall() override;

  // Answers the request, whatever happens.
  Awaitable<void> run();
  // The client went away.
  void abandon();

 private:
  // Of one choice's answer.
  struct Part {
    std::string text;
    std::vector<engine::Token> tokens;
    std::vector<api::TokenLogprob> logprobs;
    std::optional<FinishReason> ending;
    std::string stop;  // string that was the end

    void add(Part more);
  };
  struct Choice {
    std::optional<SequenceId> id;  // while it runs
    bool role_shown = false;
    bool begun = false;  // something of it has come
    bool finished = false;
    bool fresh = false;  // `come` holds something
    Part come;           // of an answer that has to be read: not read yet
    Part held;           // read, but nothing of it could be shown yet
  };

  bool start();
  Awaitable<void> stream();
  Awaitable<void> collect();
  Awaitable<void> refuse(const Error& error);
  Awaitable<void> wait(Instant until);
  void wake();

  void on_event(int choice, SequenceEvent event) override;
  bool any_unread() const;
  Awaitable<void> read_answers();
  void put(int choice, api::ChatDelta delta, Part part);
  void write(int choice, const api::ChatDelta& delta, const Part& part);
  std::string_view reason_of(int choice, FinishReason ending) const;
  void write_end();
  void tell_usage();  // to the gateway
  void fail(Error error);
  void end_sequences();
  void park_if_slow();
  void unpark_if_taken();
  void check_deadlines(Instant now);
  Instant deadline() const;

  bool streams() const { return protocol_ || chat_.request.stream; }
  api::TokenLogprob told(const engine::ChosenLogprob& logprob) const;
  api::Usage usage() const;
  api::ServedBy served() const;
  double tokens_per_s() const;

  Context context_;
  PreparedChat chat_;
  const bool protocol_;
  const CallHeaders headers_;
  const api::AnswerHead head_;
  const api::ChatChunkWriter writer_;
  api::ChatAssembler whole_;
  std::vector<Choice> choices_;
  int running_ = 0;
  std::int64_t tokens_ = 0;  // answered, given ones included
  std::int64_t tokens_given_ = 0;
  std::optional<Instant> first_token_;
  Instant last_token_{};
  double prompt_ms_ = 0;
  int prompt_passes_ = 0;
  std::int64_t cached_tokens_ = 0;  // of its prompts, each by its first choice

  std::string pending_;  // made, not handed to the socket
  std::string writing_;  // handed to the socket
  bool usage_told_ = false;
  bool parked_ = false;
  bool gone_ = false;
  bool ended_ = false;  // the last block is in `pending_`
  std::optional<Error> failed_;
  boost::asio::steady_timer timer_;
};

}  // namespace flotilla::runner
