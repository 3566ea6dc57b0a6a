#include "runner/disk_store.h"

#include <condition_variable>
#include <fstream>
#include <map>
#include <sys/stat.h>

#include <gtest/gtest.h>

namespace flotilla::runner {
namespace {

using Tokens = std::vector<engine::Token>;
namespace fs = std::filesystem;

Tokens count(int n, int from = 0) {
  Tokens tokens;
  for (int i = 0; i < n; ++i) tokens.push_back(from + i);
  return tokens;
}

batch::Cells cells_of(std::size_t bytes, int value = 7) {
  return std::make_shared<std::vector<std::byte>>(bytes, static_cast<std::byte>(value));
}

struct DiskStoreTest : testing::Test {
  DiskStoreTest() {
    std::string name = fs::temp_directory_path() / "flotilla-disk-XXXXXX";
    folder = ::mkdtemp(name.data());
  }
  ~DiskStoreTest() override { fs::remove_all(folder); }

  std::unique_ptr<DiskStore> open(std::int64_t bytes_max = 1 << 20, bool can_cut = true) {
    auto store = DiskStore::open({.folder = folder, .bytes_max = bytes_max, .can_cut = can_cut},
                                 [this](std::uint64_t ticket, std::optional<CellFile> file) {
                                   const std::lock_guard lock(mutex);
                                   loaded[ticket] = std::move(file);
                                   changed.notify_all();
                                 });
    EXPECT_TRUE(store) << store.error().message;
    return std::move(*store);
  }
  std::optional<CellFile> load(DiskStore& store, std::uint64_t file) {
    const std::uint64_t ticket = ++last_ticket;
    store.load(file, ticket);
    std::unique_lock lock(mutex);
    EXPECT_TRUE(
        changed.wait_for(lock, std::chrono::seconds(20), [&] { return loaded.contains(ticket); }));
    return loaded[ticket];
  }
  // For what the store's own thread does.
  template <class Condition>
  static void wait(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "it did not come";
      std::this_thread::yield();
    }
  }
  // What was put before is on the disk, or has been refused.
  void settle(DiskStore& store, int files) {
    wait([&] { return store.usage().count == files; });
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> out;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".cells") out.push_back(entry.path());
    }
    return out;
  }
  static void change_byte(const fs::path& file, std::streamoff at) {
    std::fstream io(file, std::ios::in | std::ios::out | std::ios::binary);
    io.seekg(at);
    const int byte = io.get();
    io.seekp(at);
    io.put(static_cast<char>(byte ^ 1));
  }

  fs::path folder;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::uint64_t, std::optional<CellFile>> loaded;
  std::uint64_t last_ticket = 0;
};

TEST_F(DiskStoreTest, GivesBackWhatWasPut) {
  const auto store = open();
  store->put({.group = "g", .tokens = count(100)}, cells_of(5000, 9));
  settle(*store, 1);
  EXPECT_FALSE(store->find("other", count(100)));
  const auto match = store->find("g", count(80));
  ASSERT_TRUE(match);
  EXPECT_EQ(match->length, 79);
  const auto file = load(*store, match->file);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->head.tokens, count(100));
  EXPECT_EQ(file->cells, *cells_of(5000, 9));
  struct stat info{};
  ASSERT_EQ(::stat(files().at(0).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

// The store's thread is held up, as by a slow disk, before it can write anything.
TEST_F(DiskStoreTest, WhatIsOnItsWayIsFoundAndReadFromMemory) {
  constexpr std::uint64_t kHeldUp = 1000;
  bool held = false;
  bool go_on = false;
  std::vector<std::size_t> on_disk;  // when each was delivered
  const auto store = *DiskStore::open({.folder = folder, .bytes_max = 1 << 20},
                                      [&](std::uint64_t ticket, std::optional<CellFile> file) {
                                        std::unique_lock lock(mutex);
                                        loaded[ticket] = std::move(file);
                                        on_disk.push_back(files().size());
                                        held = held || ticket == kHeldUp;
                                        changed.notify_all();
                                        if (ticket == kHeldUp)
                                          changed.wait(lock, [&] { return go_on; });
                                      });
  store->load(999, kHeldUp);
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(20), [&] { return held; }));
  }
  store->put({.group = "g", .tokens = count(70)}, cells_of(3000, 8));
  store->put({.group = "g", .tokens = count(100)}, cells_of(5000, 9));
  EXPECT_FALSE(store->find("other", count(100)));
  const auto match = store->find("g", count(95));
  ASSERT_TRUE(match);
  EXPECT_EQ(match->length, 94);
  store->load(match->file, 1);
  {
    const std::lock_guard lock(mutex);
    go_on = true;
    changed.notify_all();
  }
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(
        changed.wait_for(lock, std::chrono::seconds(20), [&] { return loaded.contains(1); }));
    ASSERT_TRUE(loaded[1]);
    EXPECT_EQ(loaded[1]->head.tokens, count(100));
    EXPECT_EQ(loaded[1]->cells, *cells_of(5000, 9));
    EXPECT_EQ(on_disk, (std::vector<std::size_t>{0, 0}));
  }
  // The longer one has all of the shorter.
  wait([&] { return store->usage().count == 1 && store->usage().bytes > 5000; });
  const auto written = store->find("g", count(95));
  ASSERT_TRUE(written);
  EXPECT_EQ(written->file, match->file) << "it goes by the same name";
  store->load(written->file, 2);
  std::unique_lock lock(mutex);
  ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(20), [&] { return loaded.contains(2); }));
  ASSERT_TRUE(loaded[2]);
  EXPECT_EQ(loaded[2]->cells, *cells_of(5000, 9));
}

TEST_F(DiskStoreTest, TheNextOneTakesOverWhatLiesThere) {
  {
    const auto store = open();
    store->put({.group = "", .tokens = count(100)}, cells_of(5000));
    settle(*store, 1);
  }
  std::ofstream(folder / "3.cells.part") << "half of a file";
  const auto store = open();
  EXPECT_EQ(store->usage().count, 1);
  EXPECT_FALSE(fs::exists(folder / "3.cells.part"));
  const auto match = store->find("", count(100));
  ASSERT_TRUE(match);
  EXPECT_TRUE(load(*store, match->file));
}

TEST_F(DiskStoreTest, WithoutRoomTheOldestGoes) {
  const auto store = open(12'000);
  store->put({.group = "", .tokens = count(100)}, cells_of(5000));
  settle(*store, 1);
  store->put({.group = "", .tokens = count(100, 1000)}, cells_of(5000));
  settle(*store, 2);
  store->put({.group = "", .tokens = count(100, 2000)}, cells_of(5000));
  store->put({.group = "", .tokens = count(100, 3000)}, cells_of(50'000));
  wait([&] { return !fs::exists(folder / "1.cells"); });  // to find it would be to use it
  settle(*store, 2);
  EXPECT_FALSE(store->find("", count(100)));
  EXPECT_TRUE(store->find("", count(100, 2000)));
  EXPECT_TRUE(store->find("", count(100, 1000)));
  EXPECT_FALSE(store->find("", count(100, 3000))) << "alone it is more than all";
  EXPECT_EQ(files().size(), 2U);
  EXPECT_LE(store->usage().bytes, 12'000);
}

// Each byte of head and cells, a file cut off anywhere, another one's file.
TEST_F(DiskStoreTest, AChangedFileIsRefusedAndGone) {
  std::uintmax_t size = 0;
  {
    const auto store = open();
    store->put({.group = "group", .tokens = count(70)}, cells_of(300));
    settle(*store, 1);
    size = fs::file_size(files().at(0));
  }
  const fs::path whole = folder / "whole";
  fs::rename(files().at(0), whole);
  const auto key = [&] {
    std::ifstream in(folder / "key");
    return std::string(std::istreambuf_iterator<char>(in), {});
  }();
  const fs::path file = folder / "1.cells";
  ASSERT_TRUE(read_cell_file(whole, key));
  for (std::uintmax_t at = 0; at < size; ++at) {
    fs::copy_file(whole, file, fs::copy_options::overwrite_existing);
    change_byte(file, static_cast<std::streamoff>(at));
    EXPECT_FALSE(read_cell_file(file, key)) << "byte " << at;
    fs::resize_file(file, at);
    EXPECT_FALSE(read_cell_file(file, key)) << "cut to " << at;
    EXPECT_FALSE(read_cell_file_head(file, key)) << "cut to " << at;
  }
  EXPECT_FALSE(read_cell_file(whole, std::string(64, 'x')));

  fs::copy_file(whole, file, fs::copy_options::overwrite_existing);
  change_byte(file, static_cast<std::streamoff>(size) - 1);
  const auto store = open();
  const auto match = store->find("group", count(70));
  ASSERT_TRUE(match) << "its head is as it was";
  EXPECT_FALSE(load(*store, match->file));
  EXPECT_FALSE(store->find("group", count(70)));
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(DiskStoreTest, AFileThatIsGoneIsDeliveredAsNone) {
  const auto store = open();
  store->put({.group = "", .tokens = count(100)}, cells_of(100));
  settle(*store, 1);
  const auto match = store->find("", count(100));
  fs::remove(files().at(0));
  ASSERT_TRUE(match);
  EXPECT_FALSE(load(*store, match->file));
  EXPECT_EQ(store->usage().count, 0);
}

}  // namespace
}  // namespace flotilla::runner
