#pragma once

#include <span>

namespace flotilla::store {

// Step N brings a database from schema N to N + 1 (SQLite's user_version). Only ever appended to.
std::span<const char* const> migrations();

}  // namespace flotilla::store
