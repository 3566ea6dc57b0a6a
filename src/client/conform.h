#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/asker.h"

// Request cases and behaviours against any OpenAI-compatible server, one after the other.
namespace flotilla::client {

struct ConformOptions {
  Asker::Settings server;
  std::string only;  // of the ids; empty: all
};

struct CaseSeen {
  std::string id;
  std::string why;
  std::string api;     // "chat completions", "responses", "behaviour": what it is counted with
  std::string breach;  // why it does not hold; empty: it does
  double ms = 0;
};

// Ids of what `only` leaves, in the order of run_conform.
std::vector<std::string> conform_ids(const std::string& only);

// `tell` is called as each case ends.
Task<std::vector<CaseSeen>> run_conform(Executor executor, http::Client& client,
                                        ConformOptions options,
                                        std::function<void(const CaseSeen&)> tell,
                                        const Clock& clock);

struct ConformScore {
  std::string api;
  int held = 0;
  int of = 0;
};
// By API in the order that they came in; the last one is of all.
std::vector<ConformScore> scores_of(const std::vector<CaseSeen>& cases);

std::string score_lines(const std::vector<CaseSeen>& cases);
std::string conform_json(const std::string& url, const std::string& model,
                         const std::vector<CaseSeen>& cases);

}  // namespace flotilla::client
