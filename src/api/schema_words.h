#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "api/json.h"

// The words of JSON schemas, for the files that walk one.
namespace flotilla::api::schema {

using Words = std::initializer_list<std::string_view>;
bool one_of(std::string_view word, Words words);

// Says nothing about which answers are right.
bool is_annotation(std::string_view word);
// Says something about values of one type alone.
bool is_of_strings(std::string_view word);
bool is_of_numbers(std::string_view word);
bool is_of_arrays(std::string_view word);
bool is_of_objects(std::string_view word);
// Is known at all.
bool is_word(std::string_view word);

std::string_view view(const boost::json::string_view& text);
boost::json::string json_name(std::string_view name);
const json::Value* find(const json::Object& object, std::string_view name);
// What a reference ("#/$defs/a") names in `root`; null: nothing.
const json::Value* resolve(const json::Value& root, std::string_view pointer);
// `type`: of the seven; "integer" takes none with a fraction.
bool is_type(const json::Value& value, std::string_view type);

// References between schemas `made` that are named "#/$defs/rN", by N, in which only $ref, anyOf,
// prefixItems, items, minItems, required and properties matter.
//
// One that comes back to itself without anything written in between; -1: none.
int find_cycle(const std::vector<json::Value>& made);
// Whether the first has a finite value: else an answer would never end.
bool has_end(const std::vector<json::Value>& made);

}  // namespace flotilla::api::schema
