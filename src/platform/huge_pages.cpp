#include "platform/huge_pages.h"

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <cstdint>
#include <cstring>

namespace flotilla::platform {
namespace {

#ifdef __linux__
struct WholePages {
  std::byte* begin = nullptr;
  std::size_t size = 0;
};

WholePages whole_pages(void* memory, std::size_t bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto at = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t skipped = (page - at % page) % page;
  if (bytes < skipped + page) return {};
  return {static_cast<std::byte*>(memory) + skipped, (bytes - skipped) / page * page};
}
#endif

}  // namespace

void prefer_huge_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#ifdef __linux__
  if (bytes < (4U << 20)) return;
  const WholePages pages = whole_pages(memory, bytes);
  ::madvise(pages.begin, pages.size, MADV_HUGEPAGE);
#endif
}

void zero_pages(void* memory, std::size_t bytes) {
  auto* begin = static_cast<std::byte*>(memory);
#ifdef __linux__
  const WholePages pages = whole_pages(memory, bytes);
  if (pages.size > 0 && ::madvise(pages.begin, pages.size, MADV_DONTNEED) == 0) {
    ::madvise(pages.begin, pages.size, MADV_DONTDUMP);
    std::byte* const end = pages.begin + pages.size;
    std::memset(begin, 0, static_cast<std::size_t>(pages.begin - begin));
    std::memset(end, 0, bytes - static_cast<std::size_t>(end - begin));
    return;
  }
#endif
  std::memset(begin, 0, bytes);
}

}  // namespace flotilla::platform
