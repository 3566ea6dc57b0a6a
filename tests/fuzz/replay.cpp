// fuzz_replay CORPUS: each target with each of its inputs, without a fuzzer. What ends the process
// is named before it runs.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "fuzz/target.h"

namespace {

namespace fs = std::filesystem;

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2 || !fs::is_directory(arguments[1])) {
    std::fputs("usage: fuzz_replay CORPUS\n", stderr);
    return 2;
  }
  int inputs = 0, without = 0;
  for (const auto& target : flotilla::fuzz::all_targets()) {
    const fs::path folder = fs::path(arguments[1]) / target.name;
    std::vector<fs::path> files;
    if (fs::is_directory(folder)) {
      for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
    }
    std::ranges::sort(files);
    if (files.empty()) std::printf("%s has no inputs\n", folder.c_str());
    without += files.empty() ? 1 : 0;
    target.run({});
    for (const fs::path& file : files) {
      std::printf("%s/%s\n", folder.filename().c_str(), file.filename().c_str());
      std::fflush(stdout);
      target.run(content_of(file));
      ++inputs;
    }
  }
  std::printf("%d inputs\n", inputs);
  return without == 0 ? 0 : 1;
}
