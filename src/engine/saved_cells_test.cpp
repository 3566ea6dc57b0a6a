#include "engine/saved_cells.h"

#include <gtest/gtest.h>

namespace flotilla::engine {
namespace {

std::vector<std::byte> sealed(std::uint64_t fingerprint, int length, std::size_t payload) {
  std::vector<std::byte> state(saved_header_bytes() + payload);
  for (std::size_t i = saved_header_bytes(); i < state.size(); ++i) state[i] = std::byte(i);
  seal_saved_cells(fingerprint, length, state);
  return state;
}

TEST(SavedCells, GiveBackWhatWasSealed) {
  const auto state = sealed(77, 12, 300);
  const auto opened = open_saved_cells(77, state);
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->length, 12);
  EXPECT_EQ(opened->payload.size(), 300U);
  EXPECT_EQ(opened->payload.data(), state.data() + saved_header_bytes());
}

TEST(SavedCells, OfAnotherModelAreRefused) {
  const auto opened = open_saved_cells(78, sealed(77, 12, 300));
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("another model"), std::string::npos);
}

TEST(SavedCells, AnyFlippedBitAndAnyCutIsNoticed) {
  auto state = sealed(77, 12, 100);
  for (std::size_t bit = 0; bit < state.size() * 8; ++bit) {
    state[bit / 8] ^= std::byte(1U << bit % 8);
    EXPECT_FALSE(open_saved_cells(77, state)) << "bit " << bit;
    state[bit / 8] ^= std::byte(1U << bit % 8);
  }
  for (std::size_t size = 0; size < state.size(); ++size) {
    EXPECT_FALSE(open_saved_cells(77, std::span(state).first(size))) << size;
  }
  state.push_back({});
  EXPECT_FALSE(open_saved_cells(77, state));
}

}  // namespace
}  // namespace flotilla::engine
