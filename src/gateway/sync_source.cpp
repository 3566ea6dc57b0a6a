#include "gateway/sync_source.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "gateway/machine.h"

namespace flotilla::gateway {
namespace {

// Two files of that size are known to differ.
bool is_disputed(std::int64_t bytes, const std::vector<Holder>& holders) {
  return std::ranges::any_of(holders, [&](const Holder& one) {
    return one.bytes == bytes && std::ranges::any_of(holders, [&](const Holder& other) {
             return other.bytes == bytes && !is_same_file(one, other);
           });
  });
}

// Those that say what the file is. Who is to get it does so only where nobody else has it, and who
// does not know its hash only where that tells nothing apart.
std::vector<Holder> witnesses(std::vector<Holder> holders) {
  const auto is_wanted = [](const Holder& holder) { return holder.wanted; };
  if (!std::ranges::all_of(holders, is_wanted)) std::erase_if(holders, is_wanted);
  const std::vector<Holder> all = holders;
  std::erase_if(holders, [&](const Holder& holder) {
    return holder.hash.empty() && is_disputed(holder.bytes, all);
  });
  return holders;
}

// In how many folders its file is.
std::size_t count_of(const Holder& one, const std::vector<Holder>& holders) {
  std::set<Place> places;
  for (const Holder& other : holders)
    if (is_same_file(one, other)) places.insert(place_of(other.node));
  return places.size();
}

std::string words_of(const Holder& one, const Holder& other) {
  return one.bytes != other.bytes ? fmt::format("{} bytes", one.bytes)
                                  : fmt::format("SHA-256 {}…", one.hash.substr(0, 12));
}

}  // namespace

Place place_of(const api::NodeSpec& node) { return {machine_key(node), node.models_dir}; }

std::vector<Holder> holders_of(const api::SyncSpec& spec, const std::vector<api::NodeModels>& asked,
                               const std::vector<api::NodeSpec>& all) {
  std::set<Place> wanted;
  for (const api::NodeSpec& node : all)
    if (std::ranges::find(spec.nodes, node.id) != spec.nodes.end()) wanted.insert(place_of(node));
  std::vector<Holder> out;
  for (const api::NodeModels& one : asked) {
    const auto file = std::ranges::find(one.models, spec.model, &api::ModelFile::path);
    const auto node = std::ranges::find(all, one.node, &api::NodeSpec::id);
    if (file == one.models.end() || node == all.end()) continue;
    out.push_back(
        {.node = *node, .bytes = file->bytes, .wanted = wanted.contains(place_of(*node))});
  }
  return out;
}

bool is_same_file(const Holder& one, const Holder& other) {
  return one.bytes == other.bytes &&
         (one.hash.empty() || other.hash.empty() || one.hash == other.hash);
}

bool needs_hashes(const std::vector<Holder>& holders) {
  const std::vector<Holder> all = witnesses(holders);
  return std::ranges::any_of(all, [&](const Holder& one) {
    return std::ranges::any_of(all, [&](const Holder& other) {
      return one.bytes == other.bytes && place_of(one.node) != place_of(other.node);
    });
  });
}

Result<Holder> choose_source(const std::vector<Holder>& holders, const api::SyncSpec& spec) {
  if (!spec.from.empty()) {
    const auto is_it = [&](const Holder& holder) { return holder.node.id == spec.from; };
    const auto named = std::ranges::find_if(holders, is_it);
    if (named != holders.end()) return *named;
    return fail(Error{.code = Code::NotFound,
                      .message = fmt::format("node {} has no \"{}\"", spec.from, spec.model),
                      .param = "from"});
  }
  const std::vector<Holder> all = witnesses(holders);
  const auto rank = [&](const Holder& one) {
    return std::pair(count_of(one, all), one.node.is_local());
  };
  const Holder& best = *std::ranges::max_element(all, {}, rank);
  for (const Holder& other : all) {
    if (is_same_file(best, other) || count_of(other, all) < count_of(best, all)) continue;
    return fail(Error{
        .code = Code::Conflict,
        .message = fmt::format("nodes {} and {} have different files of that name ({} and {}); say "
                               "whose is right: --from {}, or --from {}",
                               best.node.id, other.node.id, words_of(best, other),
                               words_of(other, best), best.node.id, other.node.id),
        .param = "from"});
  }
  return best;
}

Result<void> check_others(const std::vector<Holder>& holders, const Holder& source) {
  const auto differs = [&](const Holder& holder) { return !is_same_file(holder, source); };
  const auto other = std::ranges::find_if(holders, differs);
  if (other == holders.end()) return {};
  return fail(Error{
      .code = Code::Conflict,
      .message = fmt::format("node {0} has another file of that name than node {1}; it is replaced "
                             "where it is named: --node {0}",
                             other->node.id, source.node.id),
      .param = "nodes"});
}

}  // namespace flotilla::gateway
