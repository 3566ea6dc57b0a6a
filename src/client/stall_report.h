#pragma once

#include <string>
#include <vector>

#include "client/burst_report.h"
#include "client/stall.h"

// A stall as figures, the figures as text. Pure.
namespace flotilla::client {

// What nobody may exceed while another's long prompt is computed.
struct StallLimits {
  double gap_p99_factor = 3;  // of the median gap before, or
  double gap_p99_ms = 60;
  double gap_max_factor = 4;
  double gap_max_ms = 100;
  double small_ttft_ms = 1000;
  double prompt_factor = 2.0;  // first token of the long prompt beside the streams / alone
  double alone_factor = 1.1;   // alone / `engine_alone_ms`, where that is given
};

struct StallReport {
  int streams = 0;
  std::int64_t prompt_tokens = 0;
  Spread before_ms;  // gaps between pieces of the streams
  Spread during_ms;
  int gaps_before = 0;
  int gaps_during = 0;
  std::vector<double> small_ttft_ms;
  double alone_ms = 0;   // first token of the long prompt
  double beside_ms = 0;  // the same beside the streams
  double engine_alone_ms =
      0;              // what the engine needs for the prompt without a server; 0 = not known
  std::string error;  // the first of any answer
};

StallReport report_of(const StallSeen& seen, double engine_alone_ms);

struct StallCheck {
  std::string name;
  double value = 0;
  double limit = 0;
  bool in_ms = true;
  bool holds() const { return value <= limit; }
};
std::vector<StallCheck> checks_of(const StallReport& report, const StallLimits& limits);

std::string stall_table(const std::string& url, const std::string& model, const StallReport& report,
                        const std::vector<StallCheck>& checks);
std::string stall_json(const std::string& url, const std::string& model, const StallReport& report,
                       const std::vector<StallCheck>& checks);

}  // namespace flotilla::client
