#include "batch/slots.h"

#include <gtest/gtest.h>

#include "batch/test_seeds.h"

namespace flotilla::batch {
namespace {

TEST(Slots, the_highest_moves_into_the_lowest_hole) {
  Slots slots(4);
  Sequence a{.id = 1}, b{.id = 2}, c{.id = 3}, d{.id = 4};
  for (Sequence* s : {&a, &b, &c, &d}) slots.enter(*s);
  EXPECT_TRUE(slots.full());
  slots.leave(a);
  slots.leave(c);
  const std::optional<MoveSlot> move = slots.next_move();
  ASSERT_TRUE(move.has_value());
  EXPECT_EQ(move->id, 4u);
  EXPECT_EQ(move->from, 3);
  EXPECT_EQ(move->to, 0);
  EXPECT_EQ(d.slot, 0);
  EXPECT_FALSE(slots.next_move().has_value());
}

TEST(Slots, are_dense_after_any_history) {
  for_each_seed(200, [](Random& random) {
    const int width = 1 + static_cast<int>(random.below(64));
    Slots slots(width);
    std::vector<std::unique_ptr<Sequence>> all;
    for (int i = 0; i < width; ++i) all.push_back(std::make_unique<Sequence>());
    for (int i = 0; i < 200; ++i) {
      Sequence& s = *all[random.below(all.size())];
      if (s.slot == kNoSlot) {
        slots.enter(s);
      } else {
        slots.leave(s);
      }
      if (random.chance(0.3)) continue;
      while (slots.next_move()) {
      }
      const std::vector<Sequence*> holders = slots.holders();
      ASSERT_EQ(static_cast<int>(holders.size()), slots.used());
      for (int slot = 0; slot < slots.used(); ++slot) {
        ASSERT_EQ(slots.at(slot), holders[slot]);
        ASSERT_EQ(holders[slot]->slot, slot);
      }
    }
  });
}

TEST(SlotsDeathTest, a_full_table_takes_nobody) {
  Slots slots(1);
  Sequence a, b;
  slots.enter(a);
  EXPECT_DEATH(slots.enter(b), "full");
}

}  // namespace
}  // namespace flotilla::batch
