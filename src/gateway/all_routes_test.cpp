#include <cstdlib>
#include <filesystem>
#include <set>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "api/json.h"
#include "api/openapi.h"
#include "gateway/history.h"
#include "gateway/metrics.h"
#include "gateway/routes.h"
#include "gateway/transfers.h"
#include "platform/process.h"

namespace flotilla::gateway {
namespace {

namespace fs = std::filesystem;
namespace json = api::json;

using Patterns = std::set<http::Router::Pattern>;

Patterns described() {
  Patterns out;
  const auto document = json::parse_object(api::openapi_json());
  EXPECT_TRUE(document) << document.error().message;
  for (const auto& [path, methods] : document->at("paths").as_object()) {
    for (const auto& member : methods.as_object()) {
      std::string method(member.key());
      for (char& c : method) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      out.insert({.method = std::move(method), .path = std::string(path)});
    }
  }
  return out;
}

class AllRoutes : public ::testing::Test {
 protected:
  ~AllRoutes() override { fs::remove_all(folder_); }

  Patterns served() {
    fs::create_directories(folder_);
    auto settings =
        Settings::read({.environment = [](const char*) -> const char* { return nullptr; }});
    EXPECT_TRUE(settings);
    Random random(1);
    KeyRing keys;
    Guard guard({}, keys);
    Control control({.executor = io_.get_executor(),
                     .clock = &clock_,
                     .random = &random,
                     .knobs = &settings->knobs(),
                     .state_dir = folder_,
                     .state_id = "x",
                     .version = "0"},
                    std::move(*store::Store::open(folder_ / "state.db")));
    Transfers transfers(io_.get_executor(), clock_, control);
    UsageTally tally;
    History history;
    Metrics metrics;
    RequestLog requests(clock_, &metrics);
    Refusals refusals;
    BlockingThread text;
    Service service{.executor = io_.get_executor(),
                    .clock = clock_,
                    .random = random,
                    .knobs = settings->knobs(),
                    .settings = *settings,
                    .control = control,
                    .guard = guard,
                    .keys = keys,
                    .tally = tally,
                    .own_secret = {},
                    .cache_secret = {},
                    .transfers = transfers,
                    .history = history,
                    .metrics = metrics,
                    .version = {},
                    .endpoint = {},
                    .itself = {},
                    .requests = requests,
                    .refusals = refusals,
                    .text = text};
    http::Router router;
    add_all_routes(router, service);
    const auto patterns = router.patterns();
    Patterns out(patterns.begin(), patterns.end());
    EXPECT_EQ(out.size(), patterns.size()) << "a route twice";
    return out;
  }

  boost::asio::io_context io_;
  SystemClock clock_;
  const fs::path folder_ =
      fs::temp_directory_path() / ("all-routes-" + std::to_string(platform::own_pid()));
};

TEST_F(AllRoutes, AreDescribedAndWhatIsDescribedIsServed) {
  const Patterns routes = served();
  const Patterns words = described();
  for (const auto& route : routes)
    EXPECT_TRUE(words.contains(route))
        << "src/api/openapi.json lacks " << route.method << ' ' << route.path;
  for (const auto& route : words)
    EXPECT_TRUE(routes.contains(route)) << "nobody answers " << route.method << ' ' << route.path;
}

}  // namespace
}  // namespace flotilla::gateway
