#include "base/numbers.h"

#include <gtest/gtest.h>

namespace flotilla {
namespace {

TEST(Numbers, AWholeTextIsANumberOrNone) {
  EXPECT_EQ(parse_double("12"), 12);
  EXPECT_EQ(parse_double("-0.5"), -0.5);
  EXPECT_EQ(parse_double("1e3"), 1000);
  for (const char* text :
       {"", " 1", "1 ", "0x10", "inf", "nan", "1e999", "1.2.3", "-", "1e", "e1"}) {
    EXPECT_FALSE(parse_double(text)) << text;
  }
}

}  // namespace
}  // namespace flotilla
