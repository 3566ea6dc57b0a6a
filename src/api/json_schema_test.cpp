#include "api/json_schema.h"

#include <string>

#include <gtest/gtest.h>

namespace flotilla::api {
namespace {

// The schema as it is held, or what is wrong with it.
std::string held(const std::string& schema, SchemaUse use = SchemaUse::Answer) {
  const auto value = json::parse(schema, {.bytes_max = 1 << 20, .depth_max = 1000});
  if (!value) return value.error().message;
  json::Fault fault;
  std::string text = holdable_schema(*value, "schema", use, fault);
  return fault ? fault.unexpected().error().message : text;
}

std::string object_with(const std::string& property) {
  return R"({"type":"object","properties":{"a":)" + property +
         R"(},"required":["a"],"additionalProperties":false})";
}

TEST(HoldableSchema, KeepsWhatAGrammarHolds) {
  EXPECT_EQ(held(object_with(R"({"type":"string","enum":["red","blue"],"description":"x"})")),
            R"({"type":"object","properties":{"a":{"enum":["red","blue"]}},"required":["a"],)"
            R"("additionalProperties":false})");
  EXPECT_EQ(held(R"({"type":"array","items":{"type":"integer","minimum":1,"exclusiveMaximum":9.5},)"
                 R"("minItems":1,"maxItems":3})"),
            R"({"type":"array","minItems":1,"maxItems":3,)"
            R"("items":{"type":"integer","minimum":1,"maximum":9}})");
  EXPECT_EQ(held(R"({"const":{"a":1}})"), R"({"const":{"a":1}})");
  EXPECT_EQ(held(R"({"type":"string","format":"date-time"})"),
            R"({"type":"string","format":"date-time"})");
  EXPECT_EQ(held("true"), "{}");
}

TEST(HoldableSchema, BoundsOfNumbersBecomeRulesOrValues) {
  EXPECT_EQ(held(R"({"type":"integer","minimum":100})"),
            R"({"type":"integer","minimum":100,"maximum":999999999999999})");
  EXPECT_EQ(held(R"({"type":"integer","maximum":-5})"),
            R"({"type":"integer","minimum":-999999999999999,"maximum":-5})");
  EXPECT_EQ(held(R"({"type":"integer","multipleOf":25,"minimum":-30,"maximum":60})"),
            R"({"enum":[-25,0,25,50]})");
  EXPECT_EQ(held(R"({"type":"number","multipleOf":1,"minimum":0.5,"maximum":3})"),
            R"({"type":"integer","minimum":1,"maximum":3})");
  EXPECT_TRUE(held(R"({"type":"number","minimum":0,"maximum":1})")
                  .starts_with(R"({"const":"flotilla:rules )"));
  EXPECT_EQ(held(R"({"type":"number","minimum":0})", SchemaUse::Tool), R"({"type":"number"})");
}

TEST(HoldableSchema, DifferentItemsOfAFewValuesAreListed) {
  EXPECT_EQ(held(R"({"type":"array","uniqueItems":true,"items":{"enum":["a","b"]}})"),
            R"({"enum":[[],["a"],["b"],["a","b"],["b","a"]]})");
  EXPECT_EQ(held(R"({"type":"array","uniqueItems":true,"items":{"type":"boolean"},"minItems":1,)"
                 R"("maxItems":1})"),
            R"({"enum":[[true],[false]]})");
  EXPECT_EQ(held(R"({"type":"array","uniqueItems":true,"maxItems":1,"items":{"$ref":"#/$defs/c"},)"
                 R"("$defs":{"c":{"type":"string","enum":["x","y","x"]}}})"),
            R"({"enum":[[],["x"],["y"]]})");
}

TEST(HoldableSchema, NullableTypesAndListsOfTypesBecomeAlternatives) {
  EXPECT_EQ(held(R"({"type":["string","null"],"maxLength":3})"),
            R"({"anyOf":[{"type":"string","maxLength":3},{"type":"null"}]})");
  EXPECT_EQ(held(R"({"type":"boolean","nullable":true})"),
            R"({"anyOf":[{"type":"boolean"},{"type":"null"}]})");
}

TEST(HoldableSchema, ReferencesBecomeItsOwn) {
  EXPECT_EQ(held(R"({"$ref":"#/definitions/a~1b%20c","definitions":{"a/b c":{"type":"null"}}})"),
            R"({"$ref":"#/$defs/r1","$defs":{"r1":{"type":"null"}}})");
  EXPECT_EQ(
      held(R"({"type":"object","properties":{"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},)"
           R"("required":["next"]})"),
      R"({"$ref":"#/$defs/r0","$defs":{"r0":{"type":"object","properties":{"next":)"
      R"({"anyOf":[{"$ref":"#/$defs/r0"},{"type":"null"}]}},"required":["next"]}}})");
}

TEST(HoldableSchema, ObjectsOfAllOfAreOneObject) {
  const std::string both =
      R"({"allOf":[{"$ref":"#/$defs/named"},{"type":"object","properties":{"b":{"type":"null"}}}],)"
      R"("$defs":{"named":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}})";
  EXPECT_EQ(held(both),
            R"({"type":"object","properties":{"a":{"type":"string"},"b":{"type":"null"}},)"
            R"("required":["a"]})");
  EXPECT_EQ(held(R"({"allOf":[{"type":"null"}]})"), R"({"type":"null"})");
}

TEST(HoldableSchema, RefusesByName) {
  const std::pair<std::string, std::string> cases[] = {
      {R"({"$ref":"#/$defs/none"})", "schema.$ref is \"#/$defs/none\""},
      {R"({"$ref":"http://x/y"})", "schema.$ref"},
      {R"({"$ref":3})", "schema.$ref"},
      {R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}})",
       "cycle"},
      {R"({"$ref":"#"})", "cycle"},
      {R"({"anyOf":[{"$ref":"#"},{"type":"null"}]})", "cycle"},
      {R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})", "no finite value"},
      {R"({"type":"array","items":{"$ref":"#"},"minItems":1})", "no finite value"},
      {R"({"type":"nonsense"})", "schema.type is \"nonsense\""},
      {R"({"type":3})", "schema.type"},
      {R"({"type":[]})", "schema.type"},
      {"false", "schema is false"},
      {"[]", "schema is an empty list"},
      {R"({"not":{"type":"null"}})", "schema.not is not supported"},
      {object_with(R"({"type":"number","minimum":1e16})"), "schema.properties.a.minimum"},
      {object_with(R"({"type":"number","minimum":2,"exclusiveMaximum":2})"), "bounds cross"},
      {object_with(R"({"type":"number","multipleOf":0.01})"), "schema.properties.a.multipleOf"},
      {object_with(R"({"type":"integer","multipleOf":3})"), "schema.properties.a.multipleOf"},
      {object_with(R"({"type":"integer","multipleOf":3,"minimum":4,"maximum":5})"), "multipleOf"},
      {object_with(R"({"type":"array","uniqueItems":true})"), "schema.properties.a.uniqueItems"},
      {object_with(R"({"type":"array","uniqueItems":true,"items":{"enum":[1,2,3,4,5,6]}})"),
       "at most 400"},
      {object_with(R"({"type":"array","uniqueItems":true,"items":{"enum":[1]},"minItems":2})"),
       "schema.properties.a.uniqueItems"},
      {R"({"const":"flotilla:rules [a]"})", "which is not for schemas"},
      {object_with(R"({"type":"null","title":"flotilla:rules "})"), "which is not for schemas"},
      {object_with(R"({"type":"string","format":"iri"})"), "schema.properties.a.format"},
      {object_with(R"({"type":"string","pattern":"abc"})"), "schema.properties.a.pattern"},
      {object_with(R"({"type":"string","maxLength":5000})"), "at most 1000"},
      {object_with(R"({"type":"array","items":{},"minItems":3,"maxItems":2})"), "minItems 3 above"},
      {object_with(R"({"type":"array","minItems":-1})"), "schema.properties.a.minItems"},
      {object_with(R"({"type":"integer","minimum":3,"maximum":2})"), "bounds cross"},
      {object_with(R"({"enum":[]})"), "schema.properties.a.enum"},
      {object_with(R"({"type":"string","enum":[1]})"), "schema.properties.a.enum"},
      {object_with(R"({"anyOf":[]})"), "schema.properties.a.anyOf"},
      {object_with(R"({"allOf":[{"type":"string"},{"type":"null"}]})"),
       "schema.properties.a.allOf"},
      {R"({"type":"object","patternProperties":{}})", "schema.patternProperties"},
      {R"({"type":"object","properties":{},"required":["b"]})", "has \"b\", which is not among"},
      {R"({"$ref":"#/$defs/a","minLength":3,"$defs":{"a":{"type":"string"}}})", "beside $ref"},
      {R"({"type":"object","properties":[]})", "schema.properties"},
      {R"({"if":{},"then":{}})", "schema.if"},
  };
  for (const auto& [schema, message] : cases) {
    EXPECT_NE(held(schema).find(message), std::string::npos) << schema << "\n-> " << held(schema);
  }
}

TEST(HoldableSchema, ToolsKeepWhatIsLeft) {
  EXPECT_EQ(held(object_with(R"({"type":"number","minimum":0})"), SchemaUse::Tool),
            R"({"type":"object","properties":{"a":{"type":"number"}},"required":["a"],)"
            R"("additionalProperties":false})");
  EXPECT_EQ(held(R"({"type":"object","patternProperties":{},"required":["b"]})", SchemaUse::Tool),
            R"({"type":"object","required":[]})");
  EXPECT_NE(held(R"({"$ref":"#/$defs/none"})", SchemaUse::Tool).find("$ref"), std::string::npos);
}

TEST(HoldableSchema, HasLimits) {
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += R"({"type":"array","items":)";
  deep += "{}" + std::string(100, '}');
  EXPECT_NE(held(deep).find("deeper than 64"), std::string::npos) << held(deep);
  std::string wide = R"({"anyOf":[)";
  for (int i = 0; i < 2100; ++i) wide += "{},";
  wide += "{}]}";
  EXPECT_NE(held(wide).find("more than 2000 nodes"), std::string::npos);
  EXPECT_NE(held(R"({"description":")" + std::string(70'000, 'x') + "\"}").find("65536"),
            std::string::npos);
  std::string loose = R"({"type":"object","properties":{)";
  for (int i = 0; i < 300; ++i) loose += "\"p" + std::to_string(i) + "\":{},";
  loose += R"("z":{}}})";
  EXPECT_NE(held(loose).find("at most 200"), std::string::npos);
  // As deep by references, which cost no depth.
  std::string chain = R"({"$ref":"#/$defs/a0","$defs":{)";
  for (int i = 0; i < 300; ++i) {
    chain += "\"a" + std::to_string(i) + R"(":{"type":"array","items":{"$ref":"#/$defs/a)" +
             std::to_string(i + 1) + "\"}},";
  }
  chain += R"("a300":{"type":"null"}}})";
  EXPECT_TRUE(held(chain).starts_with("{")) << held(chain).substr(0, 200);
}

}  // namespace
}  // namespace flotilla::api
