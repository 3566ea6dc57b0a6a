#pragma once

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flotilla::platform {

// What a runner works on, in a mapped file that outlives it: its agent reads there which requests
// were in the pass when it died, and whose own code ran. Nothing of a request but its id is in it.
//
// begin_pass(), begin_own() and end() are one thread's; a Preparing may be made on any. Without a
// file all of it does nothing.
class Breadcrumb {
 public:
  static constexpr std::size_t kRequestsMax = 64;
  static constexpr std::size_t kPreparingMax = 16;

  Breadcrumb() = default;
  // The file is made new, readable by its owner only.
  static Result<Breadcrumb> create(const std::filesystem::path& file);
  Breadcrumb(Breadcrumb&& other) noexcept;
  Breadcrumb& operator=(Breadcrumb&& other) noexcept;
  ~Breadcrumb();

  // A forward pass with these requests' sequences begins.
  void begin_pass(std::span<const std::string_view> requests);
  // Code that runs for this request alone: sampling, its grammar.
  void begin_own(std::string_view request);
  void end();

  // On a thread of its own a request's text is being prepared.
  class Preparing {
   public:
    Preparing(const Breadcrumb& crumb, std::string_view request);
    Preparing(const Preparing&) = delete;
    Preparing& operator=(const Preparing&) = delete;
    ~Preparing();

   private:
    char* slot_ = nullptr;
    std::atomic<bool>* taken_ = nullptr;
  };

 private:
  struct Page;
  Page* page_ = nullptr;
};

struct Crumbs {
  std::vector<std::string> in_pass;
  std::string own;
  std::vector<std::string> preparing;

  // The one whose doing the end must be; empty: nobody can tell.
  std::string named() const;
};
// Of a runner that has ended. Nothing where there is no such file or it is not whole.
Crumbs read_breadcrumb(const std::filesystem::path& file);

}  // namespace flotilla::platform
