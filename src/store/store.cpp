#include "store/store.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <SQLiteCpp/SQLiteCpp.h>
#include <SQLiteCpp/VariadicBind.h>
#include <fmt/format.h>

#include "store/migrations.h"

namespace flotilla::store {
namespace {

namespace fs = std::filesystem;

Error store_error(std::string_view what, const std::exception& cause) {
  return Error{.code = Code::Internal,
               .message = fmt::format("the store could not {}: {}; is its disk full or read-only?",
                                      what, cause.what()),
               .reason = "store_failed"};
}

constexpr int kNotLetIn = 401;

void trim_events(SQLite::Database& database, bool of_those_not_let_in) {
  database.exec(of_those_not_let_in
                    ? "DELETE FROM event WHERE status = 401 AND id <= (SELECT id FROM event WHERE "
                      "status = 401 ORDER BY id DESC LIMIT 1 OFFSET 1000)"
                    : "DELETE FROM event WHERE status <> 401 AND id <= (SELECT id FROM event WHERE "
                      "status <> 401 ORDER BY id DESC LIMIT 1 OFFSET 10000)");
}

// SQLite gives a journal the mode of its database.
void make_private(const fs::path& file) {
  const int created = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (created >= 0) ::close(created);
  for (const char* journal : {"", "-wal", "-shm"})
    ::chmod((file.string() + journal).c_str(), S_IRUSR | S_IWUSR);
}

std::unique_ptr<SQLite::Database> open_database(const fs::path& file) {
  make_private(file);
  auto database = std::make_unique<SQLite::Database>(file.string(),
                                                     SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  database->setBusyTimeout(250);
  database->exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON");
  return database;
}

// A damaged page may lie anywhere: the whole file is read once, before it is believed.
bool is_whole(SQLite::Database& database) {
  SQLite::Statement check(database, "PRAGMA quick_check(1)");
  return check.executeStep() && check.getColumn(0).getString() == "ok";
}

// FILE -> FILE.broken-N for the first N that is free; its journals go with it.
std::string set_aside(const fs::path& file) {
  for (int n = 1;; ++n) {
    const fs::path aside = fmt::format("{}.broken-{}", file.string(), n);
    if (fs::exists(aside)) continue;
    fs::rename(file, aside);
    for (const char* journal : {"-wal", "-shm"}) {
      std::error_code ignored;
      fs::rename(file.string() + journal, aside.string() + journal, ignored);
    }
    return aside.string();
  }
}

fs::path copy_of(const fs::path& file, int version) {
  return fmt::format("{}.schema-{}", file.string(), version);
}

std::string newer_schema(const fs::path& file, int version, int known) {
  std::string remedy =
      fmt::format("start the newer flotilla that wrote it, or give another --state directory");
  for (int older = known; older > 0; --older) {
    if (!fs::exists(copy_of(file, older))) continue;
    remedy += fmt::format(
        ", or go back to {}, which was kept before the change: put it in the place of {} (and "
        "remove its -wal and -shm)",
        copy_of(file, older).string(), file.string());
    break;
  }
  return fmt::format("{} has schema {}, and this flotilla knows schemas up to {}; {}",
                     file.string(), version, known, remedy);
}

}  // namespace

struct Store::State {
  std::unique_ptr<SQLite::Database> database;
  std::string warning;
  std::string notice;

  // A copy of what an older program left is kept, so that there is a way back to it.
  Result<void> migrate(const fs::path& file) {
    const auto steps = migrations();
    const int known = static_cast<int>(steps.size());
    const int version = database->execAndGet("PRAGMA user_version").getInt();
    if (version > known) return fail(Code::Conflict, newer_schema(file, version, known));
    if (version > 0 && version < known) {
      const fs::path copy = copy_of(file, version);
      std::error_code ignored;
      fs::remove(copy, ignored);
      make_private(copy);
      SQLite::Statement keep(*database, "VACUUM INTO ?");
      keep.bind(1, copy.string());
      keep.exec();
      notice = fmt::format("{} is brought from schema {} to {}; a copy as it was is {}",
                           file.string(), version, known, copy.string());
    }
    for (std::size_t step = static_cast<std::size_t>(version); step < steps.size(); ++step) {
      SQLite::Transaction transaction(*database);
      database->exec(steps[step]);
      database->exec(fmt::format("PRAGMA user_version = {}", step + 1));
      transaction.commit();
    }
    return {};
  }

  Result<std::vector<StoredUsage>> usage(const char* select) const;

  // One statement in one transaction.
  template <class... Values>
  Result<void> write(std::string_view what, const char* sql, const Values&... values) {
    try {
      SQLite::Transaction transaction(*database);
      SQLite::Statement statement(*database, sql);
      if constexpr (sizeof...(values) > 0) SQLite::bind(statement, values...);
      statement.exec();
      transaction.commit();
      return {};
    } catch (const std::exception& cause) {
      return fail(store_error(what, cause));
    }
  }
};

Store::Store(std::unique_ptr<State> state) : state_(std::move(state)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Result<Store> Store::open(const fs::path& file) {
  auto state = std::make_unique<State>();
  try {
    try {
      state->database = open_database(file);
      if (!is_whole(*state->database)) throw SQLite::Exception("damaged", SQLITE_CORRUPT);
    } catch (const SQLite::Exception& cause) {
      if (cause.getErrorCode() != SQLITE_NOTADB && cause.getErrorCode() != SQLITE_CORRUPT) throw;
      state->database.reset();
      state->warning = fmt::format("{} is damaged; it was set aside as {} and a new store begun",
                                   file.string(), set_aside(file));
      state->database = open_database(file);
    }
    if (auto migrated = state->migrate(file); !migrated) return fail(migrated.error());
  } catch (const std::exception& cause) {
    return fail(store_error("open " + file.string(), cause));
  }
  return Store(std::move(state));
}

const std::string& Store::warning() const { return state_->warning; }
const std::string& Store::notice() const { return state_->notice; }

Result<std::vector<StoredCluster>> Store::clusters() const {
  try {
    std::vector<StoredCluster> out;
    SQLite::Statement query(*state_->database, "SELECT id, body FROM cluster ORDER BY id");
    while (query.executeStep()) out.push_back({query.getColumn(0), query.getColumn(1)});
    return out;
  } catch (const std::exception& cause) {
    return fail(store_error("read the clusters", cause));
  }
}

Result<void> Store::put_cluster(const StoredCluster& cluster) {
  return state_->write(
      "write the cluster",
      "INSERT INTO cluster VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET body = excluded.body",
      cluster.id, cluster.body);
}

Result<void> Store::delete_cluster(const std::string& id) {
  return state_->write("delete the cluster", "DELETE FROM cluster WHERE id = ?", id);
}

Result<std::vector<StoredPool>> Store::pools() const {
  try {
    std::vector<StoredPool> out;
    SQLite::Statement query(
        *state_->database, "SELECT alias, cluster, body, generation FROM pool ORDER BY generation");
    while (query.executeStep()) {
      out.push_back({query.getColumn(0), query.getColumn(1), query.getColumn(2),
                     query.getColumn(3).getInt64()});
    }
    return out;
  } catch (const std::exception& cause) {
    return fail(store_error("read the pools", cause));
  }
}

Result<void> Store::put_pool(const StoredPool& pool) {
  return state_->write(
      "write the pool",
      "INSERT INTO pool VALUES (?, ?, ?, ?) ON CONFLICT (alias) DO UPDATE SET "
      "cluster = excluded.cluster, body = excluded.body, generation = excluded.generation",
      pool.alias, pool.cluster, pool.body, pool.generation);
}

Result<void> Store::delete_pool(const std::string& alias) {
  return state_->write("delete the pool", "DELETE FROM pool WHERE alias = ?", alias);
}

Result<std::map<std::string, std::string>> Store::settings() const {
  try {
    std::map<std::string, std::string> out;
    SQLite::Statement query(*state_->database, "SELECT name, value FROM setting");
    while (query.executeStep()) {
      out.emplace(query.getColumn(0).getString(), query.getColumn(1).getString());
    }
    return out;
  } catch (const std::exception& cause) {
    return fail(store_error("read the settings", cause));
  }
}

Result<void> Store::put_settings(const std::map<std::string, std::optional<std::string>>& changes) {
  try {
    SQLite::Transaction transaction(*state_->database);
    for (const auto& [name, value] : changes) {
      SQLite::Statement statement(*state_->database,
                                  value ? "INSERT INTO setting VALUES (?, ?) ON CONFLICT (name) DO "
                                          "UPDATE SET value = excluded.value"
                                        : "DELETE FROM setting WHERE name = ?");
      statement.bind(1, name);
      if (value) statement.bind(2, *value);
      statement.exec();
    }
    transaction.commit();
    return {};
  } catch (const std::exception& cause) {
    return fail(store_error("write the settings", cause));
  }
}

Result<std::vector<StoredKey>> Store::keys() const {
  try {
    std::vector<StoredKey> out;
    SQLite::Statement query(*state_->database,
                            "SELECT id, hash, body, created_unix_s FROM api_key");
    while (query.executeStep()) {
      out.push_back({query.getColumn(0), query.getColumn(1), query.getColumn(2),
                     query.getColumn(3).getInt64()});
    }
    return out;
  } catch (const std::exception& cause) {
    return fail(store_error("read the API keys", cause));
  }
}

Result<void> Store::put_key(const StoredKey& key) {
  return state_->write("write the API key", "INSERT INTO api_key VALUES (?, ?, ?, ?)", key.id,
                       key.hash, key.body, key.created_unix_s);
}

Result<void> Store::change_key(const StoredKey& key) {
  const auto written = state_->write("change the API key",
                                     "UPDATE api_key SET body = ? WHERE id = ?", key.body, key.id);
  if (!written) return written;
  if (state_->database->getChanges() > 0) return {};
  return fail(Code::NotFound, fmt::format("there is no API key \"{}\"", key.id));
}

Result<void> Store::delete_key(const std::string& id) {
  return state_->write("delete the API key", "DELETE FROM api_key WHERE id = ?", id);
}

Result<std::vector<StoredEvent>> Store::events(int most) const {
  try {
    std::vector<StoredEvent> out;
    SQLite::Statement query(*state_->database,
                            "SELECT at_unix_ms, who, action, status, detail FROM event "
                            "ORDER BY id DESC LIMIT ?");
    query.bind(1, most);
    while (query.executeStep()) {
      out.push_back({query.getColumn(0).getInt64(), query.getColumn(1), query.getColumn(2),
                     query.getColumn(3).getInt(), query.getColumn(4)});
    }
    return out;
  } catch (const std::exception& cause) {
    return fail(store_error("read the events", cause));
  }
}

Result<void> Store::add_event(const StoredEvent& event) {
  try {
    SQLite::Transaction transaction(*state_->database);
    SQLite::Statement add(*state_->database,
                          "INSERT INTO event (at_unix_ms, who, action, status, detail) "
                          "VALUES (?, ?, ?, ?, ?)");
    SQLite::bind(add, event.at_unix_ms, event.who, event.action, event.status, event.detail);
    add.exec();
    trim_events(*state_->database, event.status == kNotLetIn);
    transaction.commit();
    return {};
  } catch (const std::exception& cause) {
    return fail(store_error("write the event", cause));
  }
}

Result<void> Store::add_usage(const std::vector<StoredUsage>& more) {
  try {
    SQLite::Transaction transaction(*state_->database);
    SQLite::Statement add(*state_->database,
                          "INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?) "
                          "ON CONFLICT (day, key) DO UPDATE SET name = excluded.name, "
                          "requests = requests + excluded.requests, "
                          "prompt_tokens = prompt_tokens + excluded.prompt_tokens, "
                          "cached_tokens = cached_tokens + excluded.cached_tokens, "
                          "generated_tokens = generated_tokens + excluded.generated_tokens");
    for (const StoredUsage& one : more) {
      SQLite::bind(add, one.day, one.key, one.name, one.requests, one.prompt_tokens,
                   one.cached_tokens, one.generated_tokens);
      add.exec();
      add.reset();
    }
    state_->database->exec("DELETE FROM usage WHERE day <= (SELECT max(day) FROM usage) - 400");
    transaction.commit();
    return {};
  } catch (const std::exception& cause) {
    return fail(store_error("write the usage", cause));
  }
}

Result<std::vector<StoredUsage>> Store::State::usage(const char* select) const {
  try {
    std::vector<StoredUsage> out;
    SQLite::Statement query(*database, select);
    while (query.executeStep()) {
      out.push_back({.day = query.getColumn(0).getInt64(),
                     .key = query.getColumn(1),
                     .name = query.getColumn(2),
                     .requests = query.getColumn(3).getInt64(),
                     .prompt_tokens = query.getColumn(4).getInt64(),
                     .cached_tokens = query.getColumn(5).getInt64(),
                     .generated_tokens = query.getColumn(6).getInt64()});
    }
    return out;
  } catch (const std::exception& cause) {
    return fail(store_error("read the usage", cause));
  }
}

// Beside max() SQLite takes a bare column from the row that has it: the newest name.
Result<std::vector<StoredUsage>> Store::usage_by_key() const {
  return state_->usage(
      "SELECT max(day), key, name, sum(requests), sum(prompt_tokens), sum(cached_tokens), "
      "sum(generated_tokens) FROM usage GROUP BY key ORDER BY key");
}

Result<std::vector<StoredUsage>> Store::usage_by_day() const {
  return state_->usage(
      "SELECT day, '', '', sum(requests), sum(prompt_tokens), sum(cached_tokens), "
      "sum(generated_tokens) FROM usage GROUP BY day ORDER BY day DESC");
}

Result<std::int64_t> Store::next_generation() {
  if (auto counted = state_->write(
          "count the load", "UPDATE counter SET value = value + 1 WHERE name = 'generation'");
      !counted) {
    return fail(counted.error());
  }
  try {
    return state_->database->execAndGet("SELECT value FROM counter WHERE name = 'generation'")
        .getInt64();
  } catch (const std::exception& cause) {
    return fail(store_error("count the load", cause));
  }
}

}  // namespace flotilla::store
