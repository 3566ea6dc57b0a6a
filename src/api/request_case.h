#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

// Requests, each with what must come back: the files of tests/cases, whose README has the notation.
namespace flotilla::api {

struct RequestCase {
  std::string id;
  std::string why;
  std::string method;
  std::string target;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::string expect;  // a JSON object
  bool stream = false;
  bool ours = false;  // promised by this server, not by the API
};

struct CaseAnswer {
  int status = 0;
  std::string body;
  double seconds = 0;  // until the body's end
};

// All files of tests/cases as one JSON list. cmake/request_cases.cmake writes the definition.
std::string_view request_cases_json();

// A list of cases as requests to a model of that alias.
Result<std::vector<RequestCase>> read_request_cases(std::string_view json, std::string_view model);

// The first thing of the expectation that does not hold; empty: it holds.
std::string find_unmet(const RequestCase& one, const CaseAnswer& answer);

}  // namespace flotilla::api
