#pragma once

#include <cstddef>
#include <string>
#include <string_view>

struct llama_vocab;

// What GBNF rules cost, before the library takes them: it writes repetitions out, and follows every
// way that rules leave open, for each of the vocabulary's words, at each token of an answer.
namespace flotilla::engine {

// About how many elements rules come to when their repetitions are written out.
std::size_t written_out(std::string_view rules);
// The longest row of elements that may all be left out, as in `a? b? c?`; what a repetition may
// repeat counts as often as it may be repeated. At most kSkipsMax + 1; 0 for what does not parse.
int longest_skip(const std::string& rules, const llama_vocab* vocab);

inline constexpr std::size_t kWrittenOutMax = 500'000;
inline constexpr int kSkipsMax = 8;

}  // namespace flotilla::engine
