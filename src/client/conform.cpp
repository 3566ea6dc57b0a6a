#include "client/conform.h"

#include <algorithm>

#include <fmt/format.h>

#include "api/json_text.h"
#include "api/request_case.h"
#include "client/behaviours.h"

namespace flotilla::client {
namespace {

const char* const kBehaviour = "behaviour";

bool is_wanted(const std::string& id, const std::string& only) {
  return only.empty() || id.find(only) != std::string::npos;
}

// "/v1/chat/completions" -> "chat completions"; what is no face of a model is "routes".
std::string api_of(const std::string& target) {
  for (const char* name :
       {"chat/completions", "responses", "messages", "completions", "embeddings"}) {
    if (!target.starts_with(fmt::format("/v1/{}", name))) continue;
    std::string out = name;
    std::ranges::replace(out, '/', ' ');
    return out;
  }
  return "routes";
}

// The cases that any server can be asked to hold.
Result<std::vector<api::RequestCase>> cases_of_all(const std::string& model,
                                                   const std::string& only) {
  auto cases = api::read_request_cases(api::request_cases_json(), model);
  if (!cases) return fail(cases.error());
  std::erase_if(*cases, [&](const auto& one) { return one.ours || !is_wanted(one.id, only); });
  return cases;
}

Awaitable<std::string> run_case(Asker& asker, const api::RequestCase& one) {
  http::Request request = asker.make_request(one.method, one.target, one.body);
  for (const auto& [name, value] : one.headers) {
    // A case's key stands for none; the server's is sent instead.
    const bool key = name == "x-api-key" && request.headers.find("Authorization");
    if (!key) request.headers.set(name, value);
  }
  const Instant begin = asker.clock().now();
  const auto response = co_await asker.fetch(std::move(request));
  if (!response) co_return response.error().message;
  const api::CaseAnswer answer{.status = response->status,
                               .body = response->body,
                               .seconds = to_s(asker.clock().now() - begin)};
  co_return api::find_unmet(one, answer);
}

// What a request must not do to those behind it.
Awaitable<std::string> look_at_the_server(Asker& asker) {
  http::Request request = asker.make_request("GET", "/v1/models", "");
  const auto answer = co_await asker.fetch(std::move(request));
  if (!answer) co_return "afterwards: " + answer.error().message;
  if (answer->status == 200) co_return std::string();
  co_return fmt::format("afterwards GET /v1/models answers {}", answer->status);
}

}  // namespace

std::vector<std::string> conform_ids(const std::string& only) {
  std::vector<std::string> ids;
  const auto cases = cases_of_all("", only);
  if (cases) {
    for (const api::RequestCase& one : *cases) ids.push_back(one.id);
  }
  for (const Behaviour& one : behaviours()) {
    if (is_wanted(one.id, only)) ids.emplace_back(one.id);
  }
  return ids;
}

Task<std::vector<CaseSeen>> run_conform(Executor executor, http::Client& client,
                                        ConformOptions options,
                                        std::function<void(const CaseSeen&)> tell,
                                        const Clock& clock) {
  const auto cases = cases_of_all(options.server.model, options.only);
  if (!cases) co_return fail(cases.error());
  Asker asker(executor, client, options.server, clock);
  std::vector<CaseSeen> seen;
  for (const api::RequestCase& one : *cases) {
    seen.push_back({.id = one.id, .why = one.why, .api = api_of(one.target), .breach = {}});
    const Instant begin = clock.now();
    seen.back().breach = co_await run_case(asker, one);
    seen.back().ms = to_ms(clock.now() - begin);
    std::string after = co_await look_at_the_server(asker);
    if (seen.back().breach.empty()) seen.back().breach = std::move(after);
    if (tell) tell(seen.back());
  }
  for (const Behaviour& one : behaviours()) {
    if (!is_wanted(one.id, options.only)) continue;
    seen.push_back({.id = one.id, .why = one.why, .api = kBehaviour, .breach = {}});
    const Instant begin = clock.now();
    seen.back().breach = co_await one.find_breach(asker);
    seen.back().ms = to_ms(clock.now() - begin);
    if (tell) tell(seen.back());
  }
  co_return seen;
}

std::vector<ConformScore> scores_of(const std::vector<CaseSeen>& cases) {
  std::vector<ConformScore> scores;
  ConformScore all{.api = "all"};
  for (const CaseSeen& one : cases) {
    auto at = std::ranges::find(scores, one.api, &ConformScore::api);
    if (at == scores.end()) at = scores.insert(at, {.api = one.api});
    for (ConformScore* score : {&*at, &all}) {
      ++score->of;
      score->held += one.breach.empty() ? 1 : 0;
    }
  }
  scores.push_back(all);
  return scores;
}

std::string score_lines(const std::vector<CaseSeen>& cases) {
  std::string out;
  for (const ConformScore& score : scores_of(cases)) {
    out += fmt::format("{:<18} {:>3} of {:>3} held", score.api, score.held, score.of);
    if (score.of > 0) out += fmt::format("  {:>3.0f} %", 100.0 * score.held / score.of);
    out += '\n';
  }
  return out;
}

std::string conform_json(const std::string& url, const std::string& model,
                         const std::vector<CaseSeen>& cases) {
  const std::vector<ConformScore> scores = scores_of(cases);
  std::string out =
      fmt::format(R"({{"url":{},"model":{},"held":{},"of":{},"scores":[)", api::json_string(url),
                  api::json_string(model), scores.back().held, scores.back().of);
  for (std::size_t i = 0; i + 1 < scores.size(); ++i) {
    out += fmt::format(R"({}{{"api":{},"held":{},"of":{}}})", i > 0 ? "," : "",
                       api::json_string(scores[i].api), scores[i].held, scores[i].of);
  }
  out += R"(],"cases":[)";
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const CaseSeen& one = cases[i];
    out += fmt::format(R"({}{{"id":{},"api":{},"why":{},"held":{},"reason":{},"ms":{:.1f}}})",
                       i > 0 ? "," : "", api::json_string(one.id), api::json_string(one.api),
                       one.why.empty() ? "null" : api::json_string(one.why), one.breach.empty(),
                       one.breach.empty() ? "null" : api::json_string(one.breach), one.ms);
  }
  return out + "]}";
}

}  // namespace flotilla::client
