#include "batch/stop_text.h"

#include <algorithm>
#include <utility>

namespace flotilla::batch {
namespace {

std::vector<std::size_t> borders(const std::string& text) {
  std::vector<std::size_t> fallback(text.size() + 1, 0);
  for (std::size_t n = 1; n < text.size(); ++n) {
    std::size_t border = fallback[n];
    while (border > 0 && text[border] != text[n]) border = fallback[border];
    fallback[n + 1] = text[border] == text[n] ? border + 1 : 0;
  }
  return fallback;
}

}  // namespace

StopText::StopText(const std::vector<std::string>& stops) {
  for (const std::string& stop : stops) {
    // The answer is compared after its repair, so a stop string is repaired too.
    std::string text;
    Utf8Text utf8;
    utf8.add(stop, text);
    utf8.finish(text);
    if (text.empty()) continue;
    std::vector<std::size_t> fallback = borders(text);
    stops_.push_back({.text = std::move(text), .fallback = std::move(fallback)});
  }
}

bool StopText::Stop::advance(char c) {
  while (matched > 0 && text[matched] != c) matched = fallback[matched];
  if (text[matched] == c) ++matched;
  return matched == text.size();
}

StopText::Output StopText::add(std::string_view bytes) {
  Output output;
  std::string text;
  if (!stopped_) utf8_.add(bytes, text);
  scan(text, output);
  return output;
}

std::string StopText::finish() {
  Output output;
  std::string text;
  if (!stopped_) utf8_.finish(text);
  scan(text, output);
  return output.text + std::exchange(held_, {});
}

void StopText::scan(std::string_view text, Output& output) {
  for (const char c : text) {
    held_ += c;
    std::size_t complete = 0;
    for (Stop& stop : stops_) {
      if (stop.advance(c)) complete = std::max(complete, stop.text.size());
    }
    if (complete == 0) continue;
    output.text = held_.substr(0, held_.size() - complete);
    output.stop = held_.substr(held_.size() - complete);
    held_.clear();
    stopped_ = true;
    break;
  }
  output.stopped = stopped_;
  if (stopped_) return;
  std::size_t keep = 0;
  for (const Stop& stop : stops_) keep = std::max(keep, stop.matched);
  output.text = held_.substr(0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
}

}  // namespace flotilla::batch
