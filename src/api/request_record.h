#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// The way of one request as GET /admin/requests and GET /v1/requests/{id} tell it. Nothing of its
// prompt or answer is in it.
namespace flotilla::api {

struct RequestMoment {
  double at_ms = 0;       // since it arrived
  std::string what = {};  // "queued", "dispatched", "first_token", "gap", "lost", "ended"
  std::string detail = {};
};

struct RequestRecord {
  std::string id;
  std::string model;             // as the client wrote it
  std::string owner;             // the API key's id; without one "[operator at ]ADDRESS"
  std::string peer;              // the client's address
  std::string phase = "queued";  // queued, prefilling, answering, ended
  std::string node;              // that has or had it last
  bool stream = false;
  std::int64_t arrived_unix_ms = 0;
  double queued_ms = 0;
  std::optional<double> ttft_ms = {};
  double took_ms = 0;  // until now, or its end
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;
  std::uint64_t completion_tokens = 0;
  int prompt_passes = 0;  // prefill chunks
  int gaps = 0;           // pauses between pieces that were longer than the target
  double gap_max_ms = 0;
  int retries = 0;
  bool resumed = false;
  int status = 0;   // what the client got; 0: nothing yet
  std::string end;  // "completed", or why not
  std::vector<RequestMoment> moments;
};

// One with its moments; many without. The peer is for the operator: several people may have a key.
enum class Viewer { Operator, Owner };
std::string to_json(const RequestRecord& request, Viewer viewer);
Result<RequestRecord> read_request(std::string_view body);  // as to_json wrote it
// For the operator.
std::string requests_json(const std::vector<const RequestRecord*>& requests);

}  // namespace flotilla::api
