#pragma once

#include <optional>
#include <string>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "api/embeddings.h"
#include "runner/chat_call.h"

namespace flotilla::runner {

// A request for vectors that is ready for the scheduler.
struct PreparedEmbeddings {
  api::EmbeddingsRequest request;
  std::vector<std::vector<engine::Token>> inputs;
  std::size_t dimensions = 0;  // of each vector
  std::int64_t prompt_tokens = 0;
};

// Parses, checks and tokenises: for the text pool.
Result<PreparedEmbeddings> prepare_embeddings(const std::string& body, const CallHeaders& headers,
                                              const TextTools& tools);

// One request for vectors: a sequence an input, a few at a time, so that others get slots between
// them. A gateway is told every 10 s that work goes on, by white space before the JSON; what goes
// wrong after that is an error body. The I/O thread's. Destroying it ends its sequences.
class EmbeddingCall final : public SequenceListener {
 public:
  EmbeddingCall(const ChatCall::Context& context, PreparedEmbeddings prepared,
                const CallHeaders& headers);
  ~EmbeddingCall() override;

  // Answers the request, whatever happens.
  Awaitable<void> run();
  // The client went away.
  void abandon();

 private:
  void on_event(int input, SequenceEvent event) override;
  void start_some();
  Awaitable<void> wait();
  Awaitable<bool> speak(std::string_view bytes);
  Awaitable<void> answer();
  Awaitable<void> refuse(Error error);
  void fail(Error error);
  void end_sequences();
  Instant deadline() const;

  ChatCall::Context context_;
  PreparedEmbeddings prepared_;
  const CallHeaders headers_;
  std::vector<std::vector<float>> vectors_;         // by input; empty: not there yet
  std::vector<std::optional<SequenceId>> running_;  // by input
  std::size_t started_ = 0;
  std::size_t done_ = 0;
  std::optional<Instant> first_;  // vector
  std::int64_t cached_tokens_ = 0;
  bool gone_ = false;
  std::optional<Error> failed_;
  boost::asio::steady_timer timer_;
};

}  // namespace flotilla::runner
