#include "fuzz/target.h"

namespace flotilla::fuzz {

std::vector<Target> all_targets() {
  std::vector<Target> all;
  for (const auto& some : {request_targets(), answer_targets(), wire_targets(), file_targets()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace flotilla::fuzz
