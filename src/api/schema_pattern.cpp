#include "api/schema_pattern.h"

#include <charconv>

#include <fmt/format.h>

namespace flotilla::api {
namespace {

constexpr int kDepthMax = 64;
constexpr int kRepetitionMax = 1000;
// What a JSON string cannot hold as it is.
constexpr std::string_view kUnwritable = R"("\\\x00-\x1F\x7F)";

// Classes by their letter; empty: not one that is held.
std::string_view class_of(char letter) {
  switch (letter) {
    case 'd': return "0-9";
    case 'w': return "A-Za-z0-9_";
    case 's': return " ";  // the only white space that a JSON string holds as it is
    default: return {};
  }
}

bool is_punctuation(char c) {
  constexpr std::string_view kMarks = "^$.[](){}|*+?/-!#%&',:;<=>@_`~ ";
  return kMarks.find(c) != kMarks.npos;
}

class Translation {
 public:
  Translation(std::string_view body, std::string& why) : body_(body), why_(why) {}

  std::optional<std::string> run() {
    out_ = "^";
    while (at_ < body_.size()) {
      if (!step()) return std::nullopt;
    }
    if (depth_ != 0) return refused("its parentheses do not match");
    return out_ + "$";
  }

 private:
  std::nullopt_t refused(std::string why) {
    why_ = std::move(why);
    return std::nullopt;
  }
  bool refuse(std::string why) {
    refused(std::move(why));
    return false;
  }

  bool step() {
    const char c = body_[at_];
    switch (c) {
      case '\\': return escape();
      case '[': return char_class();
      case '{': return repetition();
      case '(':
        ++at_;
        out_ += '(';
        if (body_.substr(at_).starts_with("?:")) at_ += 2;
        if (at_ < body_.size() && body_[at_] == '?') return refuse("it looks around");
        return ++depth_ <= kDepthMax || refuse("its groups nest too deep");
      case ')':
        if (--depth_ < 0) return refuse("its parentheses do not match");
        break;
      case '.':
        out_ += fmt::format("[^{}]", kUnwritable);
        ++at_;
        return true;
      case '^':
      case '$': return refuse("it has an anchor inside");
      case '"': return refuse("it has a quote, which JSON writes otherwise");
      case '*':
      case '+':
      case '?':
        out_ += c;
        ++at_;
        skip_lazy();
        return true;
      default:
        if (static_cast<unsigned char>(c) < 0x20) return refuse("it has a control character");
    }
    out_ += c;
    ++at_;
    return true;
  }

  // How eager a repetition is changes no answer.
  void skip_lazy() {
    if (at_ < body_.size() && body_[at_] == '?') ++at_;
  }

  bool escape() {
    if (at_ + 1 >= body_.size()) return refuse("it ends with a backslash");
    const char next = body_[at_ + 1];
    at_ += 2;
    if (const auto letters = class_of(next); !letters.empty()) {
      out_ += fmt::format("[{}]", letters);
      return true;
    }
    if (!is_punctuation(next)) return refuse(fmt::format("it has \\{}", next));
    // Only these are escaped in the rules' words too.
    constexpr std::string_view kMeaning = "^$.[]()|{}*+?";
    if (kMeaning.find(next) != kMeaning.npos) out_ += '\\';
    out_ += next;
    return true;
  }

  bool char_class() {
    ++at_;
    out_ += '[';
    const bool negated = at_ < body_.size() && body_[at_] == '^';
    if (negated) {
      out_ += '^';
      out_ += kUnwritable;
      ++at_;
    }
    bool any = negated;
    for (; at_ < body_.size() && body_[at_] != ']'; ++at_, any = true) {
      char c = body_[at_];
      if (c == '"' || static_cast<unsigned char>(c) < 0x20) {
        if (!negated) return refuse("it has a character that JSON writes otherwise");
        continue;
      }
      if (c != '\\') {
        const bool range = at_ + 2 < body_.size() && body_[at_ + 1] == '-' && body_[at_ + 2] != ']';
        const auto within = [&](char inner) { return c <= inner && inner <= body_[at_ + 2]; };
        if (range && !negated && (within('"') || within('\\'))) {
          return refuse("a range in it has a character that JSON writes otherwise");
        }
        if (c == '[') out_ += '\\';
        out_ += c;
        continue;
      }
      if (++at_ >= body_.size()) break;
      c = body_[at_];
      if (const auto letters = class_of(c); !letters.empty()) {
        out_ += letters;
      } else if (c == '\\' || c == '"' || c == 'n' || c == 't' || c == 'r') {
        if (!negated) return refuse("it has a character that JSON writes otherwise");
      } else if (!is_punctuation(c)) {
        return refuse(fmt::format("it has \\{} in a class", c));
      } else if (c == '^') {
        out_ += R"(\x5E)";
      } else {
        if (c == '[' || c == ']' || c == '-') out_ += '\\';
        out_ += c;
      }
    }
    if (at_ >= body_.size()) return refuse("a class in it does not end");
    if (!any) return refuse("a class in it is empty");
    ++at_;
    out_ += ']';
    return true;
  }

  bool repetition() {
    const std::size_t end = body_.find('}', at_);
    if (end == body_.npos) return refuse("a repetition in it does not end");
    const std::string_view inner = body_.substr(at_ + 1, end - at_ - 1);
    const std::size_t comma = inner.find(',');
    for (const std::string_view part :
         {inner.substr(0, comma), comma == inner.npos ? "0" : inner.substr(comma + 1)}) {
      int times = 0;
      const auto [stopped, error] = std::from_chars(part.data(), part.data() + part.size(), times);
      const bool open = part.empty() && comma != inner.npos;
      if (!open && (error != std::errc{} || stopped != part.data() + part.size())) {
        return refuse(fmt::format("it has {{{}}}", inner));
      }
      if (times > kRepetitionMax) {
        return refuse(fmt::format("it repeats {} times; at most {}", times, kRepetitionMax));
      }
    }
    out_ += body_.substr(at_, end + 1 - at_);
    at_ = end + 1;
    skip_lazy();
    return true;
  }

  const std::string_view body_;
  std::string& why_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::string out_;
};

}  // namespace

std::optional<std::string> holdable_pattern(std::string_view pattern, std::string& why) {
  const bool whole = pattern.size() >= 2 && pattern.front() == '^' && pattern.back() == '$' &&
                     pattern[pattern.size() - 2] != '\\';
  if (!whole) {
    why = "it must begin with ^ and end with $";
    return std::nullopt;
  }
  return Translation(pattern.substr(1, pattern.size() - 2), why).run();
}

}  // namespace flotilla::api
