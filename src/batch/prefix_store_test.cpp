#include "batch/prefix_store.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace flotilla::batch {
namespace {

using Tokens = std::vector<engine::Token>;

Cells cells_of(std::size_t bytes) { return std::make_shared<std::vector<std::byte>>(bytes); }

Tokens count(int n, int from = 0) {
  Tokens tokens;
  for (int i = 0; i < n; ++i) tokens.push_back(from + i);
  return tokens;
}

Tokens joined(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

CellStore make(std::int64_t bytes_max = 1 << 20, bool can_cut = true) {
  return CellStore({.bytes_max = bytes_max, .can_cut = can_cut, .tokens_min = 4});
}

bool put(CellStore& store, const std::string& group, Tokens tokens, Cells cells) {
  const auto bytes = static_cast<std::int64_t>(cells->size());
  return store.put({group, std::move(tokens)}, std::move(cells), bytes);
}

TEST(PrefixStore, FindsTheMostThatIsShared) {
  CellStore store = make();
  put(store, "", joined(count(10), {100, 101}), cells_of(1));
  put(store, "", joined(count(10), {200, 201, 202}), cells_of(2));
  const auto match = store.find("", joined(count(10), {200, 201, 7, 8}));
  ASSERT_TRUE(match);
  EXPECT_EQ(match->length, 12);
  EXPECT_EQ(match->stored, 13);
  EXPECT_EQ(match->value->size(), 2U);
}

TEST(PrefixStore, TheLastTokenIsAlwaysComputed) {
  CellStore store = make();
  put(store, "", count(10), cells_of(1));
  EXPECT_EQ(store.find("", count(10))->length, 9);
  EXPECT_EQ(store.find("", count(5))->length, 4);
  EXPECT_FALSE(store.find("", count(4))) << "three tokens are not worth it";
  EXPECT_FALSE(store.find("", {}));
}

TEST(PrefixStore, GroupsDoNotSeeEachOther) {
  CellStore store = make();
  put(store, "a", count(10), cells_of(1));
  EXPECT_FALSE(store.find("b", count(10)));
  EXPECT_FALSE(store.find("", count(10)));
  EXPECT_TRUE(store.find("a", count(10)));
}

TEST(PrefixStore, ALongerOneTakesTheShorterOnesPlace) {
  CellStore store = make();
  put(store, "", count(10), cells_of(100));
  put(store, "", count(20), cells_of(200));
  EXPECT_EQ(store.size(), 1U);
  put(store, "", count(15), cells_of(150));
  EXPECT_EQ(store.size(), 1U);
  EXPECT_EQ(store.find("", count(16))->value->size(), 200U);
}

TEST(PrefixStore, TheLeastRecentlyUsedGoes) {
  CellStore store = make(1000);
  const std::size_t each = 300 - 10 * sizeof(engine::Token);
  for (const int from : {0, 1000, 2000}) put(store, "", count(10, from), cells_of(each));
  EXPECT_EQ(store.bytes(), 900);
  store.find("", count(10));
  put(store, "", count(10, 3000), cells_of(each));
  EXPECT_TRUE(store.find("", count(10)));
  EXPECT_FALSE(store.find("", count(10, 1000)));
  EXPECT_FALSE(put(store, "", count(10, 4000), cells_of(1000))) << "alone it is more than all";
  EXPECT_EQ(store.size(), 3U);
  store.shrink(0);
  EXPECT_EQ(store.bytes(), 0);
}

TEST(PrefixStore, WhoeverGoesIsTold) {
  using Why = CellStore::Why;
  std::vector<std::pair<std::size_t, Why>> gone;
  CellStore store({.bytes_max = 1000,
                   .tokens_min = 4,
                   .on_drop = [&](const CellStore::Key& key, const Cells&, Why why) {
                     gone.emplace_back(key.second.size(), why);
                   }});
  put(store, "", count(10), cells_of(100));
  put(store, "", count(20), cells_of(200));
  put(store, "", count(30, 1000), cells_of(800));
  EXPECT_EQ(gone,
            (std::vector<std::pair<std::size_t, Why>>{{10, Why::Superseded}, {20, Why::NoRoom}}));
  EXPECT_TRUE(store.covers({"", count(5, 1000)}));
  EXPECT_FALSE(store.covers({"", count(5)}));
}

TEST(PrefixStore, StatesThatCannotBeCutMatchAsAWholeOnly) {
  CellStore store = make(1 << 20, false);
  put(store, "", count(10), cells_of(1));
  put(store, "", count(20), cells_of(2));
  put(store, "", joined(count(20), {7, 7, 7}), cells_of(3));
  EXPECT_EQ(store.find("", count(30))->length, 20);
  EXPECT_EQ(store.find("", count(20))->length, 10) << "its last token must be computed";
  EXPECT_EQ(store.find("", joined(count(12), {9, 9}))->length, 10);
  EXPECT_FALSE(store.find("", count(9)));
}

// Against the plain search over all entries.
TEST(PrefixStore, AgreesWithAPlainSearch) {
  Random random(17);
  for (const bool can_cut : {true, false}) {
    CellStore store = make(1 << 30, can_cut);
    std::vector<Tokens> all;
    const auto draw = [&] {
      Tokens tokens;
      const auto length = 1 + random.below(12);
      for (std::uint64_t i = 0; i < length; ++i) {
        tokens.push_back(static_cast<engine::Token>(random.below(2)));
      }
      return tokens;
    };
    for (int i = 0; i < 200; ++i) {
      all.push_back(draw());
      const bool kept = put(store, "", all.back(), cells_of(1));
      EXPECT_EQ(kept, all.back().size() >= 4);
      if (!kept) all.pop_back();
      Tokens asked = draw();
      std::size_t best = 0;
      for (const Tokens& tokens : all) {
        const std::size_t shared = common_prefix(tokens, std::span(asked).first(asked.size() - 1));
        if (can_cut || shared == tokens.size()) best = std::max(best, shared);
      }
      const auto match = store.find("", asked);
      EXPECT_EQ(match ? match->length : 0, best >= 4 ? static_cast<int>(best) : 0);
    }
  }
}

}  // namespace
}  // namespace flotilla::batch
