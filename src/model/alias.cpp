#include "model/alias.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include <fmt/format.h>

#include "model/split_name.h"

namespace flotilla::model {
namespace {

constexpr std::size_t kAliasMax = 64;
constexpr std::size_t kIdMax = 41;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// q4_1, q4_k_m, iq2_xxs, tq1_0, f16, bf16, mxfp4(_moe), each maybe after "ud-"; of folders also
// q6, 6bit, mlx-6bit, fp8, awq; lower case.
bool is_quantisation(std::string_view text) {
  take(text, "ud-");
  for (const std::string_view whole :
       {"f16", "f32", "fp16", "fp32", "bf16", "mxfp4", "mxfp4_moe", "nvfp4", "fp8", "awq", "gptq"})
    if (text == whole) return true;
  std::string_view bits = text;
  take(bits, "mlx-");
  if (bits.size() == 4 && is_digit(bits.front()) && bits.ends_with("bit")) return true;
  if (text.size() == 2 && text.front() == 'q' && is_digit(text.back())) return true;
  if (!take(text, "iq") && !take(text, "tq") && !take(text, "q")) return false;
  if (text.empty() || !is_digit(text.front())) return false;
  text.remove_prefix(1);
  if (text.empty() || text.front() != '_') return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c == '_' || is_digit(c) || is_lower(c); });
}

std::string_view without_quantisation(std::string_view name) {
  for (std::size_t at = 1; at < name.size(); ++at) {
    const bool separator = name[at] == '.' || name[at] == '-' || name[at] == '_';
    if (separator && is_quantisation(name.substr(at + 1))) return name.substr(0, at);
  }
  return name;
}

}  // namespace

std::string default_alias(std::string_view model_path) {
  while (model_path.ends_with('/')) model_path.remove_suffix(1);
  const auto slash = model_path.rfind('/');
  if (slash != std::string_view::npos) model_path.remove_prefix(slash + 1);
  const std::string lowered = lower(model_path);
  std::string_view name = lowered;
  if (name.ends_with(".gguf")) name.remove_suffix(5);
  if (const auto split = parse_split_name(name)) name = split->base;
  name = without_quantisation(name);

  std::string alias;
  for (const char c : name) {
    const bool kept = is_lower(c) || is_digit(c) || c == '.' || c == '-';
    if (alias.empty() && !is_lower(c) && !is_digit(c)) continue;
    if (alias.size() < kAliasMax) alias += kept ? c : '-';
  }
  while (!alias.empty() && (alias.back() == '-' || alias.back() == '.')) alias.pop_back();
  return alias.empty() ? "model" : alias;
}

Result<void> check_alias(std::string_view alias) {
  const bool begins = !alias.empty() && (is_lower(alias.front()) || is_digit(alias.front()));
  const bool clean = std::all_of(alias.begin(), alias.end(), [](char c) {
    return is_lower(c) || is_digit(c) || c == '.' || c == '-';
  });
  if (begins && clean && alias.size() <= kAliasMax) return {};
  return fail(Code::InvalidArgument,
              fmt::format("alias \"{}\" must be 1-{} of a-z, 0-9, '.' and '-', and begin with a "
                          "letter or digit",
                          alias.substr(0, 2 * kAliasMax), kAliasMax));
}

Result<void> check_id(std::string_view what, std::string_view id) {
  const bool begins = !id.empty() && (is_lower(id.front()) || is_digit(id.front()));
  const bool clean = std::all_of(id.begin(), id.end(),
                                 [](char c) { return is_lower(c) || is_digit(c) || c == '-'; });
  if (begins && clean && id.size() <= kIdMax) return {};
  return fail(Code::InvalidArgument,
              fmt::format("{} \"{}\" must be 1-{} of a-z, 0-9 and '-', and begin with a letter or "
                          "digit",
                          what, id.substr(0, 2 * kIdMax), kIdMax));
}

}  // namespace flotilla::model
