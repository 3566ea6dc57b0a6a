#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// API keys as an operator declares and sees them. The secret itself is in one answer only, that of
// its making.
namespace flotilla::api {

struct KeySpec {
  std::string name;                      // unique: 1-64 of A-Z, a-z, 0-9, '.', '_' and '-'
  std::vector<std::string> models = {};  // aliases that it may ask for; empty = all
  double weight = 1;                     // its share where keys wait for each other, 0.01-100
  std::int64_t requests_per_min = 0;     // these three: 0 = no bound
  std::int64_t tokens_per_min = 0;       // prompt and answer
  std::int64_t max_in_flight = 0;
  std::string cache_group = {};     // keys of one group share prefixes; empty = with nobody
  std::int64_t expires_unix_s = 0;  // 0 = never
};

struct KeyShown {
  std::string id;  // "key-" and 8 hex digits
  KeySpec spec;
  std::int64_t created_unix_s = 0;
  std::int64_t in_flight = 0;
};

// InvalidArgument names the field; unknown ones are refused.
Result<KeySpec> parse_key_spec(std::string_view body);
std::string to_json(const KeySpec& spec);
// `secret`: of a key that was just made; empty otherwise.
std::string key_json(const KeyShown& key, const std::string& secret);
std::string keys_json(const std::vector<KeyShown>& keys);
Result<std::vector<KeyShown>> read_keys(std::string_view body);  // as keys_json wrote it
struct NewKey {
  KeyShown key;
  std::string secret;
};
Result<NewKey> read_new_key(std::string_view body);  // as key_json wrote it

}  // namespace flotilla::api
