#include "platform/breadcrumb.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "platform/fd.h"

namespace flotilla::platform {
namespace {

constexpr std::size_t kNameBytes = 48;
using Name = std::array<char, kNameBytes>;

void write_name(char* to, std::string_view name) {
  const std::size_t size = std::min(name.size(), kNameBytes - 1);
  std::memcpy(to, name.data(), size);
  to[size] = '\0';
}

std::string read_name(const Name& name) {
  return {name.data(), ::strnlen(name.data(), name.size())};
}

}  // namespace

// Plain stores suffice: the kernel keeps them when the process dies, and the reader comes after.
struct Breadcrumb::Page {
  std::uint32_t in_pass;
  std::uint32_t own;
  std::array<Name, kRequestsMax> requests;
  Name own_name;
  std::array<Name, kPreparingMax> preparing;
  std::array<std::atomic<bool>, kPreparingMax> taken;
};

Result<Breadcrumb> Breadcrumb::create(const std::filesystem::path& file) {
  ::unlink(file.c_str());
  const Fd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!fd || ::ftruncate(fd.get(), sizeof(Page)) != 0) {
    return fail(Code::Unavailable,
                fmt::format("{} cannot be written: {}", file.string(), std::strerror(errno)));
  }
  void* memory = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) {
    return fail(Code::Unavailable,
                fmt::format("{} cannot be mapped: {}", file.string(), std::strerror(errno)));
  }
  Breadcrumb crumb;
  crumb.page_ = static_cast<Page*>(memory);  // the file's zeros are a valid page
  return crumb;
}

Breadcrumb::Breadcrumb(Breadcrumb&& other) noexcept : page_(std::exchange(other.page_, nullptr)) {}

Breadcrumb& Breadcrumb::operator=(Breadcrumb&& other) noexcept {
  std::swap(page_, other.page_);
  return *this;
}

Breadcrumb::~Breadcrumb() {
  if (page_ != nullptr) ::munmap(page_, sizeof(Page));
}

void Breadcrumb::begin_pass(std::span<const std::string_view> requests) {
  if (page_ == nullptr) return;
  const std::size_t count = std::min(requests.size(), kRequestsMax);
  for (std::size_t i = 0; i < count; ++i) write_name(page_->requests[i].data(), requests[i]);
  page_->in_pass = static_cast<std::uint32_t>(count);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

void Breadcrumb::begin_own(std::string_view request) {
  if (page_ == nullptr) return;
  write_name(page_->own_name.data(), request);
  page_->own = 1;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

void Breadcrumb::end() {
  if (page_ == nullptr) return;
  page_->in_pass = 0;
  page_->own = 0;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

Breadcrumb::Preparing::Preparing(const Breadcrumb& crumb, std::string_view request) {
  if (crumb.page_ == nullptr) return;
  for (std::size_t i = 0; i < kPreparingMax && slot_ == nullptr; ++i) {
    if (!crumb.page_->taken[i].exchange(true)) slot_ = crumb.page_->preparing[i].data();
  }
  if (slot_ == nullptr) return;
  taken_ =
      &crumb.page_
           ->taken[static_cast<std::size_t>(slot_ - crumb.page_->preparing[0].data()) / kNameBytes];
  write_name(slot_, request);
}

Breadcrumb::Preparing::~Preparing() {
  if (slot_ == nullptr) return;
  slot_[0] = '\0';
  taken_->store(false);
}

std::string Crumbs::named() const {
  if (!own.empty()) return preparing.empty() ? own : std::string();
  if (preparing.size() == 1 && in_pass.empty()) return preparing.front();
  if (in_pass.size() == 1 && preparing.empty()) return in_pass.front();
  return {};
}

Crumbs read_breadcrumb(const std::filesystem::path& file) {
  // Of the page's layout, which only this build's runner has written.
  struct Bytes {
    std::uint32_t in_pass;
    std::uint32_t own;
    std::array<Name, Breadcrumb::kRequestsMax> requests;
    Name own_name;
    std::array<Name, Breadcrumb::kPreparingMax> preparing;
  } page{};
  Crumbs crumbs;
  std::ifstream in(file, std::ios::binary);
  if (!in.read(reinterpret_cast<char*>(&page), sizeof page)) return crumbs;
  const std::size_t count = std::min<std::size_t>(page.in_pass, page.requests.size());
  for (std::size_t i = 0; i < count; ++i) crumbs.in_pass.push_back(read_name(page.requests[i]));
  if (page.own != 0) crumbs.own = read_name(page.own_name);
  for (const Name& name : page.preparing) {
    if (name[0] != '\0') crumbs.preparing.push_back(read_name(name));
  }
  return crumbs;
}

}  // namespace flotilla::platform
