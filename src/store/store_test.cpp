#include "store/store.h"

#include <fstream>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "store/migrations.h"

namespace flotilla::store {
namespace {

namespace fs = std::filesystem;

class StoreTest : public testing::Test {
 protected:
  StoreTest() {
    std::string name = (fs::temp_directory_path() / "flotilla-store-XXXXXX").string();
    directory_ = mkdtemp(name.data());
  }
  ~StoreTest() override { fs::remove_all(directory_); }
  fs::path file() const { return directory_ / "state.db"; }

  fs::path directory_;
};

TEST_F(StoreTest, keys_are_kept_by_id_with_their_hash) {
  {
    auto store = Store::open(file());
    ASSERT_TRUE(store);
    ASSERT_TRUE(store->put_key({"key-1", "aa", "{}", 5}));
    ASSERT_TRUE(store->put_key({"key-2", "bb", "{}", 6}));
    EXPECT_FALSE(store->put_key({"key-3", "bb", "{}", 7})) << "two keys of one secret";
    EXPECT_FALSE(store->put_key({"key-1", "cc", "{}", 7})) << "two keys of one id";
    ASSERT_TRUE(store->change_key({"key-1", "ignored", R"({"name":"x"})", 9}));
    ASSERT_TRUE(store->delete_key("key-2"));
    EXPECT_EQ(store->change_key({"key-2", "bb", "{}", 6}).error().code, Code::NotFound)
        << "what was taken back does not come back";
  }
  const auto keys = Store::open(file())->keys();
  ASSERT_EQ(keys->size(), 1U);
  EXPECT_EQ(keys->at(0).hash, "aa");
  EXPECT_EQ(keys->at(0).body, R"({"name":"x"})");
  EXPECT_EQ(keys->at(0).created_unix_s, 5);
}

TEST_F(StoreTest, keeps_what_was_declared_over_a_reopen) {
  {
    auto store = Store::open(file());
    ASSERT_TRUE(store) << store.error().message;
    ASSERT_TRUE(store->put_cluster({"local", "{}"}));
    ASSERT_TRUE(store->put_pool({"m", "local", R"({"model":"/m.gguf"})", 1}));
    ASSERT_TRUE(store->put_cluster({"local", R"({"label":"L"})"}));
  }
  auto store = Store::open(file());
  ASSERT_TRUE(store);
  const auto clusters = store->clusters();
  ASSERT_EQ(clusters->size(), 1U);
  EXPECT_EQ(clusters->front().body, R"({"label":"L"})");
  const auto pools = store->pools();
  ASSERT_EQ(pools->size(), 1U);
  EXPECT_EQ(pools->front().alias, "m");
  EXPECT_EQ(pools->front().generation, 1);
}

TEST_F(StoreTest, deleting_a_cluster_takes_its_pools_along) {
  auto store = Store::open(file());
  ASSERT_TRUE(store->put_cluster({"a", "{}"}));
  ASSERT_TRUE(store->put_cluster({"b", "{}"}));
  ASSERT_TRUE(store->put_pool({"m", "a", "{}", 1}));
  ASSERT_TRUE(store->put_pool({"n", "b", "{}", 2}));
  ASSERT_TRUE(store->delete_cluster("a"));
  ASSERT_EQ(store->pools()->size(), 1U);
  EXPECT_EQ(store->pools()->front().alias, "n");
}

TEST_F(StoreTest, a_pool_needs_its_cluster) {
  auto store = Store::open(file());
  EXPECT_FALSE(store->put_pool({"m", "nowhere", "{}", 1}));
  EXPECT_TRUE(store->pools()->empty());
}

TEST_F(StoreTest, generations_never_repeat) {
  auto first = Store::open(file());
  EXPECT_EQ(*first->next_generation(), 1);
  EXPECT_EQ(*first->next_generation(), 2);
  auto second = Store::open(file());
  EXPECT_EQ(*second->next_generation(), 3);
}

TEST_F(StoreTest, a_broken_file_is_set_aside_and_named) {
  std::ofstream(file()) << std::string(8192, 'x');
  auto store = Store::open(file());
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_NE(store->warning().find("state.db.broken-1"), std::string::npos) << store->warning();
  EXPECT_EQ(fs::file_size(file().string() + ".broken-1"), 8192U);
  EXPECT_TRUE(store->clusters()->empty());
}

// What the first program that kept a state left, byte for byte of its schema.
constexpr const char* kFirstSchema = R"sql(
  CREATE TABLE cluster (id TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT;
  CREATE TABLE pool (
    alias TEXT PRIMARY KEY,
    cluster TEXT NOT NULL REFERENCES cluster(id) ON DELETE CASCADE,
    body TEXT NOT NULL,
    generation INTEGER NOT NULL) STRICT;
  CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
  INSERT INTO counter VALUES ('generation', 0);
  PRAGMA user_version = 1;
  INSERT INTO cluster VALUES ('local', '{"nodes":[{"id":"a"}]}');
  INSERT INTO pool VALUES ('m', 'local', '{"model":"/m.gguf"}', 7);
  UPDATE counter SET value = 7;
)sql";

void run_sql(const fs::path& file, const char* sql) {
  sqlite3* raw = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &raw), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(raw, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(raw);
  sqlite3_close(raw);
}

TEST_F(StoreTest, no_file_of_it_is_open_to_others) {
  run_sql(file(), kFirstSchema);  // with the mode that the process gives
  fs::permissions(file(), fs::perms::others_read, fs::perm_options::add);
  auto store = Store::open(file());
  ASSERT_TRUE(store->add_event({1, "me", "POST /a", 200, ""}));
  int files = 0;
  for (const auto& one : fs::directory_iterator(directory_)) {
    EXPECT_EQ(one.status().permissions(), fs::perms::owner_read | fs::perms::owner_write)
        << one.path();
    ++files;
  }
  EXPECT_EQ(files, 4) << "itself, two journals, the copy of the older schema";
}

TEST_F(StoreTest, those_who_are_not_let_in_push_nothing_out_of_the_audit) {
  ASSERT_TRUE(Store::open(file())->add_event({1, "operator", "PUT /admin/settings", 200, ""}));
  run_sql(file(), R"sql(
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10100)
    INSERT INTO event (at_unix_ms, who, action, status, detail)
    SELECT 2, '10.0.0.9', 'POST /admin/login', 401, '' FROM n)sql");
  auto store = Store::open(file());
  ASSERT_TRUE(store->add_event({3, "10.0.0.9", "POST /admin/login", 401, ""}));
  ASSERT_TRUE(store->add_event({4, "operator", "PUT /admin/settings", 200, ""}));
  const auto events = *store->events(20'000);
  EXPECT_EQ(events.size(), 1002U);
  EXPECT_EQ(events.back().who, "operator");
}

TEST_F(StoreTest, a_store_of_the_first_schema_is_brought_up_to_date_and_a_copy_kept) {
  run_sql(file(), kFirstSchema);
  const fs::path copy = file().string() + ".schema-1";
  {
    auto store = Store::open(file());
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_NE(store->notice().find(copy.string()), std::string::npos) << store->notice();
    EXPECT_EQ(store->clusters()->at(0).body, R"({"nodes":[{"id":"a"}]})");
    EXPECT_EQ(store->pools()->at(0).generation, 7);
    EXPECT_EQ(*store->next_generation(), 8);
    EXPECT_TRUE(store->put_settings({{"QUEUE_MAX", "5"}}));
    EXPECT_TRUE(store->put_key({"key-1", "aa", "{}", 5}));
    EXPECT_TRUE(store->add_event({1, "me", "POST /a", 200, ""}));
  }
  EXPECT_TRUE(Store::open(file())->notice().empty()) << "once";
  struct stat info{};
  ASSERT_EQ(stat(copy.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  // The way back: the copy is what it was.
  auto before = Store::open(copy);
  ASSERT_TRUE(before);
  EXPECT_NE(before->notice().find("from schema 1"), std::string::npos);
  EXPECT_EQ(before->pools()->at(0).generation, 7);
  EXPECT_TRUE(before->settings()->empty());
}

TEST_F(StoreTest, a_newer_schema_is_refused_with_both_versions_and_what_would_do) {
  ASSERT_TRUE(Store::open(file()));
  run_sql(file(), "PRAGMA user_version = 99");
  const auto store = Store::open(file());
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, Code::Conflict);
  const std::string known = std::to_string(migrations().size());
  EXPECT_EQ(store.error().message,
            file().string() + " has schema 99, and this flotilla knows schemas up to " + known +
                "; start the newer flotilla that wrote it, or give another --state directory");
  const std::string copy = file().string() + ".schema-" + known;
  std::ofstream(copy) << "x";
  EXPECT_NE(Store::open(file()).error().message.find("go back to " + copy), std::string::npos);
  EXPECT_FALSE(fs::exists(file().string() + ".broken-1")) << "nothing is set aside";
}

TEST_F(StoreTest, the_file_is_the_owners_alone) {
  ASSERT_TRUE(Store::open(file()));
  struct stat info{};
  ASSERT_EQ(stat(file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

TEST_F(StoreTest, a_write_that_fails_is_an_error_and_changes_nothing) {
  auto store = Store::open(file());
  ASSERT_TRUE(store->put_cluster({"a", "old"}));
  sqlite3* other = nullptr;  // another process holds the write lock
  ASSERT_EQ(sqlite3_open(file().c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  const auto written = store->put_cluster({"a", "new"});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::Internal);
  sqlite3_close(other);
  EXPECT_EQ(store->clusters()->front().body, "old");
}

TEST_F(StoreTest, settings_are_written_and_taken_back_together) {
  auto store = Store::open(file());
  ASSERT_TRUE(store->put_settings({{"QUEUE_MAX", "5"}, {"DRAIN_S", "1"}}));
  ASSERT_TRUE(store->put_settings({{"QUEUE_MAX", "6"}, {"DRAIN_S", std::nullopt}}));
  const std::map<std::string, std::string> expected{{"QUEUE_MAX", "6"}};
  EXPECT_EQ(*store->settings(), expected);
}

TEST_F(StoreTest, events_come_newest_first) {
  auto store = Store::open(file());
  ASSERT_TRUE(store->add_event({1, "me", "POST /a", 200, ""}));
  ASSERT_TRUE(store->add_event({2, "me", "POST /b", 409, "busy"}));
  const auto events = store->events(10);
  ASSERT_EQ(events->size(), 2U);
  EXPECT_EQ(events->front().action, "POST /b");
  EXPECT_EQ(events->front().status, 409);
  EXPECT_EQ(store->events(1)->size(), 1U);
}

TEST_F(StoreTest, usage_adds_up_by_key_and_by_day) {
  const auto used = [](std::int64_t day, const char* key, const char* name, std::int64_t scale) {
    return StoredUsage{day, key, name, scale, 10 * scale, 4 * scale, 100 * scale};
  };
  {
    auto store = Store::open(file());
    ASSERT_TRUE(store->add_usage({used(7, "k", "old", 1), used(7, "", "", 2)}));
    ASSERT_TRUE(store->add_usage({used(7, "k", "old", 3), used(8, "k", "new", 5)}));
  }
  const auto store = Store::open(file());
  const auto keys = *store->usage_by_key();
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys[0].key, "");
  EXPECT_EQ(keys[0].requests, 2);
  EXPECT_EQ(keys[1].name, "new");
  EXPECT_EQ(keys[1].requests, 9);
  EXPECT_EQ(keys[1].prompt_tokens, 90);
  EXPECT_EQ(keys[1].cached_tokens, 36);
  EXPECT_EQ(keys[1].generated_tokens, 900);
  const auto days = *store->usage_by_day();
  ASSERT_EQ(days.size(), 2U);
  EXPECT_EQ(days[0].day, 8);
  EXPECT_EQ(days[1].requests, 6);
}

TEST_F(StoreTest, usage_of_long_ago_goes) {
  auto store = Store::open(file());
  ASSERT_TRUE(store->add_usage({{.day = 100, .key = "k", .name = "n", .requests = 1}}));
  ASSERT_TRUE(store->add_usage({{.day = 499, .key = "k", .name = "n", .requests = 1}}));
  EXPECT_EQ(store->usage_by_day()->size(), 2U);
  ASSERT_TRUE(store->add_usage({{.day = 500, .key = "k", .name = "n", .requests = 1}}));
  EXPECT_EQ(store->usage_by_day()->size(), 2U);
}

TEST_F(StoreTest, usage_that_cannot_be_written_is_not_half_there) {
  auto store = Store::open(file());
  sqlite3* other = nullptr;  // another process holds the write lock
  ASSERT_EQ(sqlite3_open(file().c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_FALSE(store->add_usage({{.day = 1, .key = "a"}, {.day = 1, .key = "b"}}));
  sqlite3_close(other);
  EXPECT_TRUE(store->usage_by_key()->empty());
}

}  // namespace
}  // namespace flotilla::store
