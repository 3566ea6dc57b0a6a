#include "gateway/relay.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include "api/error_body.h"
#include "http/sse.h"

namespace flotilla::gateway {
namespace {

using namespace std::string_view_literals;

// A runner says something at least every 10 s; silence beyond this is a hang that nobody noticed.
constexpr std::chrono::seconds kSilenceMax{35};
constexpr std::size_t kRefusalBytesMax = 1 << 20;
constexpr std::size_t kKept = 4 << 10;

// For each chunk of every stream: find() would stop at each quote of the JSON.
bool contains(std::string_view text, std::string_view part) {
  return ::memmem(text.data(), text.size(), part.data(), part.size()) != nullptr;
}

// Nearly all chunks end so: they finish no choice, and the rest of them need not be searched.
bool goes_on(std::string_view data) {
  return data.ends_with("\"finish_reason\":null}]}"sv) ||
         data.ends_with("\"finish_reason\":null}],\"usage\":null}"sv);
}

// Finds the choice of each chunk of a stream: `"choices":[{"index":N`. Quotes inside texts are
// escaped, so no text of an answer can look like it. All chunks begin alike: it is looked for where
// it was in the one before.
class ChoiceFinder {
 public:
  int choice_of(std::string_view data) {
    constexpr auto mark = "\"choices\":[{\"index\":"sv;
    if (data.size() < at_ || !data.substr(at_).starts_with(mark)) {
      const auto found = data.find(mark);
      if (found == std::string_view::npos) return 0;
      at_ = found;
    }
    int choice = 0;
    std::from_chars(data.data() + at_ + mark.size(), data.data() + data.size(), choice);
    return choice;
  }

 private:
  std::size_t at_ = 0;
};

// Reads a runner's blocks: what of them the client gets, and what they tell.
class RunnerBlocks {
 public:
  RunnerBlocks(ChatJob& job, ChatAnswer& answer, const NodeId& node)
      : job_(job), answer_(answer), node_(node), resumed_(job.begun) {
    for (const auto& [choice, ids] : job.shown.tokens) tokens_ += ids.size();
  }

  void take(std::string_view block) {
    if (error_ || done_) return;
    if (block.starts_with(": t "sv)) {
      const auto line_end = block.find('\n');
      if (const auto choice = api::read_token_comment(block.substr(0, line_end), ids_)) {
        job_.pace.tokens(*choice, ids_.size(), now_);
        auto& tokens = job_.shown.tokens[*choice];
        tokens.insert(tokens.end(), ids_.begin(), ids_.end());
        tokens_ += ids_.size();
        job_.usage.completion_tokens = std::max(job_.usage.completion_tokens, tokens_);
      }
      block.remove_prefix(line_end + 1);
    }
    if (block.starts_with("data: "sv)) {
      take_data(block);
    } else if (block.starts_with(": u "sv)) {
      take_usage(block.substr(0, block.find('\n')));
    } else if (job_.stream && block.size() > 1) {
      out += block;  // a keep-alive
    }
  }

  std::string out;  // for the client
  // Before the blocks of a read: when it was, and how much it is.
  void begin_read(Instant now, std::size_t bytes) {
    now_ = now;
    if (job_.stream) out.reserve(bytes);
  }
  // Who has it all keeps little for what comes next: a stream may be silent for long.
  void sent() {
    if (out.capacity() > kKept) {
      std::string().swap(out);
    } else {
      out.clear();
    }
  }
  // Tells the trace, and who pays for it, of what came since the last call.
  void tell() {
    if (!std::exchange(fresh_, false)) return;
    job_.trace->shown(tokens_);
    job_.lease.settle(job_.usage.prompt_tokens, job_.usage.completion_tokens, now_);
  }
  bool done() const { return done_; }
  const std::optional<Error>& error() const { return error_; }

 private:
  void take_data(std::string_view block) {
    const std::string_view data = block.substr(6, block.find('\n') - 6);
    if (data == "[DONE]"sv) {
      done_ = true;
      return;
    }
    if (data.starts_with("{\"error\""sv)) {
      error_ = api::parse_error_body(500, data);
      return;
    }
    const int choice = choices_.choice_of(data);
    const bool listed = job_.shown.tokens.contains(choice);
    if (!listed && contains(data, "\"role\":\"assistant\""sv)) job_.shown.tokens[choice];
    if (!goes_on(data) && contains(data, "\"finish_reason\":\""sv))
      job_.shown.finished.insert(choice);
    job_.begun = fresh_ = true;
    if (job_.stream) {
      out += block;
    } else if (auto fed = answer_.assemble(data); !fed) {
      error_ = fed.error();
    }
  }

  void take_usage(std::string_view line) {
    const auto told = api::parse_usage_comment(line);
    if (!told) return;
    job_.usage.prompt_tokens = static_cast<std::uint64_t>(told->usage.prompt_tokens);
    job_.usage.completion_tokens = static_cast<std::uint64_t>(told->usage.completion_tokens);
    job_.usage.cached_tokens = static_cast<std::uint64_t>(told->usage.cached_tokens);
    job_.trace->prompt_passes(told->prompt_passes);
    job_.usage.prompt_time = std::chrono::duration_cast<Duration>(
        std::chrono::duration<double, std::milli>(told->prompt_ms));
    if (job_.stream) return;
    answer_.set_usage(told->usage, api::ServedBy{.node = node_.str(),
                                                 .replica = node_.str(),
                                                 .queued_ms = job_.queued_ms,
                                                 .ttft_ms = job_.queued_ms + told->ttft_ms,
                                                 .tokens_per_s = told->tokens_per_s,
                                                 .resumed = resumed_,
                                                 .cached_tokens = told->usage.cached_tokens});
  }

  ChatJob& job_;
  ChatAnswer& answer_;
  const NodeId& node_;
  const bool resumed_;
  bool done_ = false;
  bool fresh_ = false;
  Instant now_{};
  ChoiceFinder choices_;
  api::TokenIds ids_;  // of one comment
  std::uint64_t tokens_ = 0;
  std::optional<Error> error_;
};

}  // namespace

void add_trace(http::Headers& headers, const api::TraceContext& context) {
  if (!context.traceparent.empty()) headers.add("traceparent", context.traceparent);
  if (!context.tracestate.empty()) headers.add("tracestate", context.tracestate);
}

http::Request runner_request(const ChatJob& job, const LaunchRuntime& place, Instant now) {
  http::Request request;
  request.method = "POST";
  request.target = job.embeddings ? "/v1/embeddings" : "/v1/chat/completions";
  auto& headers = request.headers;
  const auto add = [&headers](std::string_view name, std::string value) {
    headers.add(std::string(name), std::move(value));
  };
  headers.add("Content-Type", "application/json");
  add(api::kHeaderProtocol, std::to_string(api::kRunnerProtocol));
  add(api::kHeaderRequestId, job.request_id);
  add(api::kHeaderAlias, job.alias);
  add(api::kHeaderCreated, std::to_string(job.created_unix_s));
  add(api::kHeaderNode, place.node.str());
  add(api::kHeaderQueuedMs, fmt::format("{:.1f}", job.queued_ms));
  add(api::kHeaderSeed, std::to_string(job.seed));
  if (!job.cache_group.empty()) add(api::kHeaderCacheGroup, job.cache_group);
  add_trace(headers, job.trace_context);
  if (job.begun) {
    request.body = api::resume_json(job.shown);
    add(api::kHeaderResumeBytes, std::to_string(request.body.size()));
  } else if (job.deadline != Instant::max()) {
    const double left_ms = std::max(1.0, to_ms(job.deadline - now));
    add(api::kHeaderDeadlineMs, fmt::format("{:.0f}", left_ms));
  }
  request.body += job.body;
  return request;
}

RelayEnd ended(RelayEnd::Kind kind, Error error) {
  return RelayEnd{.kind = kind, .response = {}, .error = std::move(error)};
}

RelayEnd failed(Error error) { return ended(RelayEnd::Kind::Failed, std::move(error)); }

Error too_early(std::string_view who) {
  return Error{.code = Code::Unavailable,
               .message = fmt::format("the {} ended its stream too early", who)};
}

Awaitable<RelayEnd> read_refusal(http::ClientStream& stream) {
  RelayEnd end;
  end.response.status = stream.status();
  for (;;) {
    auto bytes = co_await stream.read(kSilenceMax);
    if (!bytes) co_return failed(bytes.error());
    if (bytes->empty() || end.response.body.size() > kRefusalBytesMax) break;
    end.response.body += *bytes;
  }
  const int status = stream.status();
  const bool of_the_request =
      (status >= 400 && status < 500 && status != 429 && status != 408) || status == 504;
  end.kind = of_the_request ? RelayEnd::Kind::Refused : RelayEnd::Kind::Failed;
  end.error = api::parse_error_body(status, end.response.body);
  end.response.headers.set(
      "Content-Type",
      std::string(stream.headers().find("Content-Type").value_or("application/json")));
  co_return end;
}

Awaitable<RelayEnd> relay_runner(ChatJob& job, ChatAnswer& answer, LaunchRuntime& place,
                                 Upstream& upstream, const std::function<void()>& on_first_byte,
                                 const Clock& clock) {
  using Kind = RelayEnd::Kind;
  const UpstreamScope scope(place, upstream);
  http::Request request = runner_request(job, place, clock.now());
  auto opened = co_await place.client->open(std::move(request), kSilenceMax, upstream.opening());
  if (!opened) co_return failed(opened.error());
  http::ClientStream& stream = **opened;
  upstream.set_stream(&stream);
  if (stream.status() != 200) {
    RelayEnd refusal = co_await read_refusal(stream);
    co_return refusal;
  }

  RunnerBlocks blocks(job, answer, place.node);
  http::SseSplitter splitter;
  bool first = true;
  while (!blocks.done()) {
    auto bytes = co_await stream.read(kSilenceMax);
    if (!bytes) co_return failed(bytes.error());
    if (bytes->empty()) break;
    blocks.begin_read(clock.now(), bytes->size());
    if (!splitter.feed(*bytes, [&blocks](std::string_view block) { blocks.take(block); })) break;
    std::string().swap(*bytes);  // a slow client's stream has them once
    if (first && job.begun) {
      on_first_byte();
      first = false;
    }
    blocks.tell();
    if (blocks.done()) {
      answer.hold(std::move(blocks.out));
    } else if (!blocks.out.empty()) {
      const bool sent = co_await answer.relay(blocks.out);
      if (!sent) co_return ended(Kind::ClientGone);
      blocks.sent();
    }
    if (blocks.error()) {
      RelayEnd end = failed(*blocks.error());
      if (end.error.reason == "deadline_exceeded") {  // the request's own time was over
        end.kind = Kind::Error;
        end.error.code = Code::DeadlineExceeded;
      }
      co_return end;
    }
  }
  if (blocks.done()) co_return ended(Kind::Whole);
  co_return failed(too_early("runner"));
}

}  // namespace flotilla::gateway
