// libFuzzer's entry. The environment's FLOTILLA_FUZZ names the target; FLOTILLA_FUZZ=? lists them.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "fuzz/target.h"

namespace {

flotilla::fuzz::Target chosen;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* wanted = std::getenv("FLOTILLA_FUZZ");
  const std::string_view name = wanted != nullptr ? wanted : "";
  for (const auto& target : flotilla::fuzz::all_targets()) {
    if (name == "?")
      std::printf("%.*s\n", static_cast<int>(target.name.size()), target.name.data());
    if (target.name == name) chosen = target;
  }
  if (name == "?") std::exit(0);
  if (chosen.run == nullptr) {
    std::fputs("FLOTILLA_FUZZ names no target; FLOTILLA_FUZZ=? lists them\n", stderr);
    std::exit(2);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen.run({reinterpret_cast<const char*>(data), size});
  return 0;
}
