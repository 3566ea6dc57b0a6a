#include "runner/embedding_call.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/error_body.h"
#include "api/runner_protocol.h"

namespace flotilla::runner {
namespace {

Result<std::size_t> dimensions_of(const api::EmbeddingsRequest& request, const TextTools& tools) {
  const int length = tools.info.vector_length;
  if (length == 0) {
    return fail({.code = Code::InvalidArgument,
                 .message = fmt::format("\"{}\" ({}) gives no vectors; ask a model that does",
                                        request.model, tools.info.description),
                 .param = "model",
                 .reason = "embeddings_not_supported"});
  }
  const int wanted = request.dimensions.value_or(length);
  if (wanted > length) {
    return fail({.code = Code::InvalidArgument,
                 .message = fmt::format("dimensions is {}, but this model's vectors have {}; ask "
                                        "for at most so many",
                                        wanted, length),
                 .param = "dimensions"});
  }
  const std::size_t numbers = request.inputs.size() * static_cast<std::size_t>(wanted);
  if (numbers > api::kEmbeddingNumbersMax) {
    return fail(
        {.code = Code::InvalidArgument,
         .message = fmt::format("{} vectors of {} numbers are more than the {} numbers that "
                                "an answer may have; send fewer inputs at once",
                                request.inputs.size(), wanted, api::kEmbeddingNumbersMax),
         .param = "input"});
  }
  return static_cast<std::size_t>(wanted);
}

struct WriteAnswer {
  api::EmbeddingsAnswer answer;
  std::size_t dimensions;

  std::string operator()() {
    for (auto& vector : answer.vectors) vector = api::unit_vector(std::move(vector), dimensions);
    return api::to_json(answer);
  }
};

}  // namespace

Result<PreparedEmbeddings> prepare_embeddings(const std::string& body, const CallHeaders& headers,
                                              const TextTools& tools) {
  auto request = api::parse_embeddings_request(body);
  if (!request) return fail(request.error());
  if (!headers.protocol && request->model != tools.alias)
    return fail(unknown_model(request->model, tools));
  const auto dimensions = dimensions_of(*request, tools);
  if (!dimensions) return fail(dimensions.error());
  PreparedEmbeddings out;
  out.dimensions = *dimensions;
  for (std::size_t i = 0; i < request->inputs.size(); ++i) {
    auto input = make_raw_prompt(request->inputs[i], tools, "input");
    if (!input) {
      Error error = input.error();
      if (request->inputs.size() > 1) error.param = fmt::format("input[{}]", i);
      return fail(std::move(error));
    }
    out.prompt_tokens += static_cast<std::int64_t>(input->tokens.size());
    out.inputs.push_back(std::move(input->tokens));
  }
  out.request = std::move(*request);
  out.request.inputs.clear();
  return out;
}

EmbeddingCall::EmbeddingCall(const ChatCall::Context& context, PreparedEmbeddings prepared,
                             const CallHeaders& headers)
    : context_(context),
      prepared_(std::move(prepared)),
      headers_(headers),
      vectors_(prepared_.inputs.size()),
      running_(prepared_.inputs.size()),
      timer_(context.executor) {}

EmbeddingCall::~EmbeddingCall() { end_sequences(); }

void EmbeddingCall::end_sequences() {
  for (auto& id : running_) {
    if (id) context_.sequences->remove(*id);
    id.reset();
  }
}

// As many as there are slots, and one for each that ends: a request of 2,048 inputs stands in
// nobody's way longer than a step or two.
void EmbeddingCall::start_some() {
  const auto most = static_cast<std::size_t>(context_.tools->info.width);
  while (!failed_ && started_ < prepared_.inputs.size() && started_ - done_ < most) {
    const std::size_t input = started_++;
    SequenceStart start{.id = 0,
                        .request = headers_.request_id,
                        .prompt = std::move(prepared_.inputs[input]),
                        .answer = {},
                        .cache_group = headers_.cache_group,
                        .keep = false,
                        .wants_vector = true};
    running_[input] = context_.sequences->start(std::move(start), *this, static_cast<int>(input));
    if (running_[input]) continue;
    fail({.code = Code::ResourceExhausted,
          .message = "the runner holds as many requests as it can; try again later",
          .reason = "runner_full",
          .retry_after_s = 1});
  }
}

void EmbeddingCall::on_event(int input, SequenceEvent event) {
  const auto index = static_cast<std::size_t>(input);
  running_[index].reset();
  if (gone_ || failed_) return;
  if (event.error) return fail(std::move(*event.error));
  if (!first_) first_ = context_.clock.now();
  cached_tokens_ += event.cached_tokens;
  vectors_[index] = std::move(event.vector);
  ++done_;
  start_some();
  if (done_ == vectors_.size()) timer_.cancel();
}

void EmbeddingCall::abandon() {
  gone_ = true;
  end_sequences();
  timer_.cancel();
}

void EmbeddingCall::fail(Error error) {
  failed_ = std::move(error);
  end_sequences();
  timer_.cancel();
}

Instant EmbeddingCall::deadline() const {
  Instant earliest = Instant::max();
  if (headers_.first_token_within && !first_)
    earliest = context_.arrived + *headers_.first_token_within;
  if (prepared_.request.timeout_s) {
    const std::chrono::duration<double, std::milli> queued(headers_.queued_ms);
    const std::chrono::duration<double> whole(*prepared_.request.timeout_s);
    earliest =
        std::min(earliest, context_.arrived + std::chrono::duration_cast<Duration>(whole - queued));
  }
  return earliest;
}

// false: nobody is there.
Awaitable<bool> EmbeddingCall::speak(std::string_view bytes) {
  if (!context_.exchange.started()) {
    http::Headers headers;
    headers.set("Content-Type", "application/json");
    headers.set("X-Request-Id", headers_.request_id);
    headers.set(std::string(api::kHeaderPromptTokens), std::to_string(prepared_.prompt_tokens));
    const bool open = co_await context_.exchange.start(200, std::move(headers));
    if (!open) co_return false;
  }
  co_return co_await context_.exchange.write(bytes);
}

Awaitable<void> EmbeddingCall::wait() {
  Instant said = context_.clock.now();
  while (!gone_ && !failed_ && done_ < vectors_.size()) {
    const Instant next = headers_.protocol ? said + context_.options.keep_alive : Instant::max();
    timer_.expires_at(std::min(next, deadline()));
    co_await timer_.async_wait(kAwait);
    const Instant now = context_.clock.now();
    if (gone_ || failed_ || done_ == vectors_.size()) co_return;
    if (now >= deadline()) {
      fail({.code = Code::DeadlineExceeded,
            .message = "the vectors were not there within the request's time",
            .param = prepared_.request.timeout_s ? "timeout_s" : "",
            .reason = "deadline_exceeded"});
    } else if (now >= next) {
      const bool there = co_await speak(" ");
      gone_ = gone_ || !there;
      said = now;
    }
  }
}

Awaitable<void> EmbeddingCall::run() {
  start_some();
  co_await wait();
  if (gone_) co_return;
  if (failed_) {
    Error error = *failed_;
    co_await refuse(std::move(error));
    co_return;
  }
  co_await answer();
}

Awaitable<void> EmbeddingCall::answer() {
  const Instant first = first_.value_or(context_.clock.now());
  const bool ours = !headers_.protocol;
  WriteAnswer write{
      .answer = {.model = ours || headers_.alias.empty() ? prepared_.request.model : headers_.alias,
                 .vectors = std::move(vectors_),
                 .base64 = prepared_.request.base64,
                 .prompt_tokens = prepared_.prompt_tokens,
                 .served = {.node = headers_.node,
                            .replica = headers_.node,
                            .queued_ms = headers_.queued_ms,
                            .ttft_ms = to_ms(first - context_.arrived),
                            .cached_tokens = cached_tokens_}},
      .dimensions = prepared_.dimensions};
  const std::string body = co_await context_.text.run(std::move(write));
  if (gone_) co_return;
  const bool sent = co_await speak(body);
  if (sent) co_await context_.exchange.finish();
}

Awaitable<void> EmbeddingCall::refuse(Error error) {
  if (context_.exchange.started()) {
    const std::string body = api::openai_error_body(error);
    const bool sent = co_await context_.exchange.write(body);
    if (sent) co_await context_.exchange.finish();
    co_return;
  }
  http::Response response =
      http::json_response(api::http_status(error.code), api::openai_error_body(error));
  response.headers.set("X-Request-Id", headers_.request_id);
  if (error.retry_after_s > 0)
    response.headers.set("Retry-After", std::to_string(error.retry_after_s));
  co_await context_.exchange.respond(std::move(response));
}

}  // namespace flotilla::runner
