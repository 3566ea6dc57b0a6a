#include "store/migrations.h"

#include <array>

namespace flotilla::store {

std::span<const char* const> migrations() {
  static constexpr std::array steps = {
      R"sql(
        CREATE TABLE cluster (id TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT;
        CREATE TABLE pool (
          alias TEXT PRIMARY KEY,
          cluster TEXT NOT NULL REFERENCES cluster(id) ON DELETE CASCADE,
          body TEXT NOT NULL,
          generation INTEGER NOT NULL) STRICT;
        CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
        INSERT INTO counter VALUES ('generation', 0);
      )sql",
      R"sql(
        CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
        CREATE TABLE event (
          id INTEGER PRIMARY KEY AUTOINCREMENT,
          at_unix_ms INTEGER NOT NULL,
          who TEXT NOT NULL,
          action TEXT NOT NULL,
          status INTEGER NOT NULL,
          detail TEXT NOT NULL) STRICT;
      )sql",
      R"sql(
        CREATE TABLE api_key (
          id TEXT PRIMARY KEY,
          hash TEXT NOT NULL UNIQUE,
          body TEXT NOT NULL,
          created_unix_s INTEGER NOT NULL) STRICT;
      )sql",
      R"sql(
        CREATE TABLE usage (
          day INTEGER NOT NULL,
          key TEXT NOT NULL,
          name TEXT NOT NULL,
          requests INTEGER NOT NULL,
          prompt_tokens INTEGER NOT NULL,
          cached_tokens INTEGER NOT NULL,
          generated_tokens INTEGER NOT NULL,
          PRIMARY KEY (day, key)) STRICT;
      )sql",
  };
  return steps;
}

}  // namespace flotilla::store
