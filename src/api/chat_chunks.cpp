#include "api/chat_chunks.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "api/json_text.h"

namespace flotilla::api {
namespace {

constexpr float kLogprobMin = -9999;  // OpenAI's word for "never"

void append_int(std::string& out, std::int64_t value) {
  fmt::format_to(std::back_inserter(out), FMT_STRING("{}"), value);
}

void append_token(std::string& out, std::string_view bytes, float logprob) {
  out += R"({"token":)";
  append_quoted(out, bytes);
  out += R"(,"logprob":)";
  fmt::format_to(std::back_inserter(out), "{:.6g}",
                 static_cast<double>(std::max(logprob, kLogprobMin)));
  out += R"(,"bytes":[)";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i > 0) out += ',';
    append_int(out, static_cast<unsigned char>(bytes[i]));
  }
  out += ']';
}

void append_calls(std::string& out, const std::vector<ToolCallDelta>& calls) {
  out += R"("tool_calls":[)";
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const ToolCallDelta& call = calls[i];
    if (i > 0) out += ',';
    out += R"({"index":)";
    append_int(out, call.index);
    if (!call.name.empty()) {
      out += R"(,"id":)";
      append_quoted(out, call.id);
      out += R"(,"type":"function","function":{"name":)";
      append_quoted(out, call.name);
      out += R"(,"arguments":)";
    } else {
      out += R"(,"function":{"arguments":)";
    }
    append_quoted(out, call.arguments);
    out += "}}";
  }
  out += ']';
}

// The members of "delta", and behind it "logprobs" where there are any.
void append_delta(std::string& out, const ChatDelta& delta) {
  out += R"(,"delta":{)";
  const std::size_t begin = out.size();
  const auto separate = [&] {
    if (out.size() > begin) out += ',';
  };
  if (!delta.reasoning_content.empty()) {
    out += R"("reasoning_content":)";
    append_quoted(out, delta.reasoning_content);
  }
  if (!delta.content.empty()) {
    separate();
    out += R"("content":)";
    append_quoted(out, delta.content);
  }
  if (!delta.tool_calls.empty()) {
    separate();
    append_calls(out, delta.tool_calls);
  }
  out += '}';
  if (delta.logprobs.empty()) return;
  out += R"(,"logprobs":{"content":[)";
  for (std::size_t i = 0; i < delta.logprobs.size(); ++i) {
    if (i > 0) out += ',';
    append_logprob(out, delta.logprobs[i]);
  }
  out += R"(],"refusal":null})";
}

}  // namespace

void append_logprob(std::string& out, const TokenLogprob& token) {
  append_token(out, token.bytes, token.logprob);
  out += R"(,"top_logprobs":[)";
  for (std::size_t i = 0; i < token.top.size(); ++i) {
    if (i > 0) out += ',';
    append_token(out, token.top[i].first, token.top[i].second);
    out += '}';
  }
  out += "]}";
}

void append_usage(std::string& out, const Usage& usage) {
  fmt::format_to(std::back_inserter(out),
                 R"({{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},)"
                 R"("prompt_tokens_details":{{"cached_tokens":{}}}}})",
                 usage.prompt_tokens, usage.completion_tokens,
                 usage.prompt_tokens + usage.completion_tokens, usage.cached_tokens);
}

void append_served_by(std::string& out, const ServedBy& served) {
  out += R"({"node":)";
  append_quoted(out, served.node);
  out += R"(,"replica":)";
  append_quoted(out, served.replica);
  out += R"(,"queued_ms":)";
  append_number(out, served.queued_ms);
  out += R"(,"ttft_ms":)";
  append_number(out, served.ttft_ms);
  out += R"(,"tokens_per_s":)";
  append_number(out, served.tokens_per_s);
  out += served.resumed ? R"(,"resumed":true,"cached_tokens":)"
                        : R"(,"resumed":false,"cached_tokens":)";
  append_int(out, served.cached_tokens);
  out += '}';
}

ChatChunkWriter::ChatChunkWriter(const AnswerHead& head, bool with_usage) {
  begin_ = R"(data: {"id":)";
  append_quoted(begin_, head.id);
  begin_ += R"(,"object":"chat.completion.chunk","created":)";
  append_int(begin_, head.created);
  begin_ += R"(,"model":)";
  append_quoted(begin_, head.model);
  begin_ += R"(,"choices":[)";
  tail_ = with_usage ? "],\"usage\":null}\n\n" : "]}\n\n";
}

void ChatChunkWriter::role(std::string& out, int choice, std::string_view text,
                           const Usage* usage) const {
  out += begin_;
  out += R"({"index":)";
  append_int(out, choice);
  out += R"(,"delta":{"role":"assistant","content":)";
  append_quoted(out, text);
  out += R"(},"finish_reason":null})";
  if (usage == nullptr) {
    out += tail_;
    return;
  }
  out += R"(],"usage":)";
  append_usage(out, *usage);
  out += "}\n\n";
}

void ChatChunkWriter::delta(std::string& out, int choice, const ChatDelta& delta) const {
  out += begin_;
  out += R"({"index":)";
  append_int(out, choice);
  append_delta(out, delta);
  out += R"(,"finish_reason":null})";
  out += tail_;
}

void ChatChunkWriter::finish(std::string& out, int choice, const ChatDelta& delta,
                             std::string_view reason, const ServedBy* served) const {
  out += begin_;
  out += R"({"index":)";
  append_int(out, choice);
  append_delta(out, delta);
  out += R"(,"finish_reason":)";
  append_quoted(out, reason);
  if (!delta.stop.empty()) {
    out += R"(,"stop_reason":)";
    append_quoted(out, delta.stop);
  }
  out += '}';
  if (served == nullptr) {
    out += tail_;
    return;
  }
  out += R"(],"x_flotilla":)";
  append_served_by(out, *served);
  out.append(tail_, 1);  // without the bracket that is already there
}

void ChatChunkWriter::usage(std::string& out, const Usage& usage, const ServedBy& served) const {
  out += begin_;
  out += R"(],"usage":)";
  append_usage(out, usage);
  out += R"(,"x_flotilla":)";
  append_served_by(out, served);
  out += "}\n\n";
}

}  // namespace flotilla::api
