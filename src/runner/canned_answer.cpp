#include "runner/canned_answer.h"

#include "api/chat_chunks.h"
#include "api/runner_protocol.h"
#include "http/sse.h"

namespace flotilla::runner {

Awaitable<void> write_canned_answer(http::Exchange& exchange, CallHeaders headers,
                                    std::string alias, int chunks) {
  const api::AnswerHead head{.id = "chatcmpl-" + headers.request_id,
                             .created = headers.created.value_or(0),
                             .model = headers.alias.empty() ? alias : headers.alias};
  const api::ChatChunkWriter writer(head, false);
  http::Headers fields = http::event_stream_headers();
  bool open = co_await exchange.start(200, std::move(fields));
  const api::ChatDelta word{.content = " word"};
  const api::ChatDelta nothing;
  std::string block;
  api::TokenIds ids(1);
  writer.role(block, 0);
  for (int i = 0; open && i < chunks; ++i) {
    ids[0] = i;
    if (headers.protocol) api::append_token_comment(block, 0, ids);
    writer.delta(block, 0, word);
    open = co_await exchange.write(block);
    block.clear();
  }
  if (!open) co_return;
  const api::ServedBy served{.node = headers.node, .replica = headers.node};
  writer.finish(block, 0, nothing, "stop", &served);
  if (headers.protocol) {
    api::RunnerUsage usage;
    usage.usage.prompt_tokens = 1;
    usage.usage.completion_tokens = chunks;
    block += api::usage_comment(usage);
  }
  block += api::kSseDone;
  open = co_await exchange.write(block);
  if (open) co_await exchange.finish();
}

}  // namespace flotilla::runner
