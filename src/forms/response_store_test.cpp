#include "forms/response_store.h"

#include <gtest/gtest.h>

namespace flotilla::forms {
namespace {

api::KeptAnswer answer(const std::string& id, std::size_t bytes = 10) {
  return {.id = id, .messages = std::string(bytes, 'm'), .body = "{}", .input = "[]"};
}

TEST(ResponseStore, OnlyItsOwnerFindsAnAnswer) {
  ResponseStore store;
  store.put("a", answer("resp_1"));
  ASSERT_NE(store.find("a", "resp_1"), nullptr);
  EXPECT_EQ(store.find("b", "resp_1"), nullptr);
  EXPECT_FALSE(store.erase("b", "resp_1"));
  EXPECT_TRUE(store.erase("a", "resp_1"));
  EXPECT_EQ(store.find("a", "resp_1"), nullptr);
  EXPECT_FALSE(store.erase("a", "resp_1"));
  EXPECT_EQ(store.bytes(), 0U);
}

TEST(ResponseStore, WhatWasUsedLongestAgoGoesFirst) {
  ResponseStore store(4200);
  for (const char* id : {"1", "2", "3"}) store.put("a", answer(id, 1000));
  EXPECT_EQ(store.size(), 3U);
  ASSERT_NE(store.find("a", "1"), nullptr);
  store.put("a", answer("4", 1000));
  EXPECT_EQ(store.find("a", "2"), nullptr);
  EXPECT_NE(store.find("a", "1"), nullptr);
  EXPECT_NE(store.find("a", "4"), nullptr);
  EXPECT_LE(store.bytes(), 4200U);
}

TEST(ResponseStore, NobodyLosesAnAnswerToWhoKeepsMore) {
  ResponseStore store(14'000);
  store.put("b", answer("mine", 1000));
  for (int i = 0; i < 100; ++i) store.put("a", answer(std::to_string(i), 1000));
  EXPECT_NE(store.find("b", "mine"), nullptr);
  EXPECT_NE(store.find("a", "99"), nullptr);
  EXPECT_EQ(store.find("a", "80"), nullptr);
  for (int i = 0; i < 20; ++i) store.put("c", answer("c" + std::to_string(i), 1000));
  EXPECT_NE(store.find("b", "mine"), nullptr);
  EXPECT_NE(store.find("a", "99"), nullptr) << "each has a part";
  EXPECT_NE(store.find("c", "c19"), nullptr);
  EXPECT_LE(store.bytes(), 14'000U);
}

TEST(ResponseStore, ManySmallAnswersTakeNobodysPlace) {
  ResponseStore store;
  store.put("b", answer("mine"));
  for (std::size_t i = 0; i < ResponseStore::kEntriesMax + 10; ++i)
    store.put("a", answer(std::to_string(i)));
  EXPECT_NE(store.find("b", "mine"), nullptr);
  EXPECT_EQ(store.size(), ResponseStore::kEntriesMax);
}

TEST(ResponseStore, AnAnswerLargerThanAllIsNotKept) {
  ResponseStore store(1000);
  store.put("a", answer("1"));
  store.put("a", answer("2", 5000));
  EXPECT_EQ(store.find("a", "2"), nullptr);
  EXPECT_NE(store.find("a", "1"), nullptr) << "nor does it cost another its place";
  EXPECT_TRUE(store.erase("a", "1"));
  EXPECT_EQ(store.bytes(), 0U);
}

TEST(ResponseStore, TheSameIdTwiceIsTheLater) {
  ResponseStore store;
  store.put("a", answer("1", 10));
  store.put("a", answer("1", 20));
  EXPECT_EQ(store.find("a", "1")->messages.size(), 20U);
  EXPECT_EQ(store.size(), 1U);
}

}  // namespace
}  // namespace flotilla::forms
