#include "api/keys.h"

#include <gtest/gtest.h>

namespace flotilla::api {
namespace {

TEST(Keys, ASpecificationComesBackAsItWas) {
  const auto spec = parse_key_spec(
      R"({"name":"ci","models":["a","b"],"weight":2.5,"requests_per_min":60,"tokens_per_min":1000,)"
      R"("max_in_flight":4,"cache_group":"team","expires_unix_s":1900000000})");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(to_json(*parse_key_spec(to_json(*spec))), to_json(*spec));
  const KeyShown key{.id = "key-1", .spec = *spec, .created_unix_s = 5, .in_flight = 2};
  const auto made = read_new_key(key_json(key, "fl-secret"));
  ASSERT_TRUE(made);
  EXPECT_EQ(made->secret, "fl-secret");
  EXPECT_EQ(made->key.spec.models, spec->models);
  const auto list = read_keys(keys_json({key}));
  ASSERT_TRUE(list);
  EXPECT_EQ(list->at(0).id, "key-1");
  EXPECT_EQ(keys_json({key}).find("secret"), std::string::npos);
}

TEST(Keys, WrongValuesAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({})", "name"},
      {R"({"name":"a b"})", "name"},
      {R"({"name":"a","weight":0})", "weight"},
      {R"({"name":"a","models":"b"})", "models"},
      {R"({"name":"a","models":[1]})", "models"},
      {R"({"name":"a","requests_per_min":-1})", "requests_per_min"},
      {R"({"name":"a","max_in_flight":1.5})", "max_in_flight"},
      {R"({"name":"a","cache_group":"x/y"})", "cache_group"},
      {R"({"name":"a","wait":1})", "wait"},
  };
  for (const auto& [body, field] : cases) {
    const auto spec = parse_key_spec(body);
    ASSERT_FALSE(spec) << body;
    EXPECT_EQ(spec.error().param, field) << body;
  }
}

}  // namespace
}  // namespace flotilla::api
