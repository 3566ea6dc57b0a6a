#include "kernels/instruction_set.h"

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "kernels/row_operations.h"
#include "kernels/test_data.h"

namespace flotilla::kernels {
namespace {

class InstructionSetTest : public testing::Test {
 protected:
  InstructionSetTest() {
    if (const char* asked = std::getenv("FLOTILLA_KERNELS")) asked_ = asked;
    ::unsetenv("FLOTILLA_KERNELS");
  }
  ~InstructionSetTest() override {
    if (!asked_.empty()) ask_for(asked_);
  }
  static void ask_for(const std::string& name) { ::setenv("FLOTILLA_KERNELS", name.c_str(), 1); }

 private:
  std::string asked_;
};

TEST_F(InstructionSetTest, TheBestOneIsChosenUnlessALowerOneIsAskedFor) {
  const std::vector<InstructionSet> present = present_sets();
  EXPECT_EQ(best_instruction_set(), present.empty() ? InstructionSet::None : present.back());
  for (const InstructionSet set : present) {
    ask_for(std::string(name_of(set)));
    EXPECT_EQ(best_instruction_set(), set);
  }
  ask_for("none");
  EXPECT_EQ(best_instruction_set(), InstructionSet::None);
}

TEST_F(InstructionSetTest, WhatTheProcessorLacksIsNeverChosen) {
  for (const InstructionSet set : kInstructionSets) {
    ask_for(std::string(name_of(set)));
    EXPECT_TRUE(has_instruction_set(best_instruction_set()));
    EXPECT_LE(best_instruction_set(), set);
  }
}

// The engine asks for products alone whether a set has kernels.
TEST_F(InstructionSetTest, EverySetHasAllKernels) {
  EXPECT_EQ(matmul_kernels(InstructionSet::None), nullptr);
  for (const InstructionSet set : present_sets()) {
    SCOPED_TRACE(name_of(set));
    EXPECT_NE(matmul_kernels(set), nullptr);
    EXPECT_NE(row_kernels(set), nullptr);
    EXPECT_TRUE(has_attention(set));
  }
}

}  // namespace
}  // namespace flotilla::kernels
