#include "gateway/usage_tally.h"

namespace flotilla::gateway {
namespace {

constexpr std::int64_t kDayS = 86'400;

}  // namespace

void UsageTally::add(const store::StoredUsage& more) {
  store::StoredUsage& of = spent_[{more.day, more.key}];
  of.day = more.day;
  of.key = more.key;
  of.name = more.name;
  of.requests += more.requests;
  of.prompt_tokens += more.prompt_tokens;
  of.cached_tokens += more.cached_tokens;
  of.generated_tokens += more.generated_tokens;
}

void UsageTally::add(const Spender& spender, const cluster::Usage& usage, std::int64_t unix_s) {
  store::StoredUsage more;
  more.day = unix_s / kDayS;
  more.key = spender.key;
  more.name = spender.name;
  more.requests = 1;
  more.prompt_tokens = static_cast<std::int64_t>(usage.prompt_tokens);
  more.cached_tokens = static_cast<std::int64_t>(usage.cached_tokens);
  more.generated_tokens = static_cast<std::int64_t>(usage.completion_tokens);
  add(more);
}

std::vector<store::StoredUsage> UsageTally::take() {
  std::vector<store::StoredUsage> out;
  for (auto& [of, spent] : spent_) out.push_back(std::move(spent));
  spent_.clear();
  return out;
}

void UsageTally::put_back(const std::vector<store::StoredUsage>& taken) {
  for (const store::StoredUsage& one : taken) add(one);
}

}  // namespace flotilla::gateway
