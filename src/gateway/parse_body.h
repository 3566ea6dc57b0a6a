#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "api/engine_request.h"
#include "base/task.h"
#include "gateway/blocking_thread.h"

namespace flotilla::gateway {

// What is larger is parsed beside the I/O thread: it takes longer than a step of somebody's stream.
inline constexpr std::size_t kParseHere = 256 << 10;

enum class Asked { Chat, Vectors };
// A request that replicas answer, read with what of it `engines` get.
struct BodyReader {
  Asked asked = Asked::Chat;
  api::EngineModels engines = {};
  Result<api::ServedRequest> operator()(std::string_view body) const {
    return asked == Asked::Vectors ? api::read_served_vectors(body, engines)
                                   : api::read_served_chat(body, engines);
  }
};

template <class Parse>
struct ParseBody {
  Parse parse;
  std::string body;
  std::pair<std::string, std::invoke_result_t<Parse, std::string_view>> operator()() {
    auto parsed = parse(body);
    return {std::move(body), std::move(parsed)};
  }
};

// `body` as `parse` reads it. A large one is parsed by `thread`, which has it meanwhile.
template <class Parse>
Awaitable<std::invoke_result_t<Parse, std::string_view>> parse_body(BlockingThread& thread,
                                                                    std::string& body,
                                                                    Parse parse) {
  if (body.size() <= kParseHere) co_return parse(body);
  ParseBody<Parse> work{.parse = std::move(parse), .body = std::move(body)};
  auto [back, parsed] = co_await thread.run(std::move(work));
  body = std::move(back);
  co_return std::move(parsed);
}

}  // namespace flotilla::gateway
