#pragma once

#include <compare>
#include <functional>
#include <string>
#include <utility>

namespace flotilla {

// A name of one kind of thing; two kinds do not mix. Tag is an empty struct that names the kind.
template <class Tag>
class Id {
 public:
  Id() = default;
  explicit Id(std::string text) : text_(std::move(text)) {}

  const std::string& str() const { return text_; }
  bool empty() const { return text_.empty(); }
  auto operator<=>(const Id&) const = default;

 private:
  std::string text_;
};

using NodeId = Id<struct NodeTag>;        // a machine, or one device of it; global to the server
using ClusterId = Id<struct ClusterTag>;  // [a-z0-9][a-z0-9-]{0,40}
using Alias = Id<struct AliasTag>;        // the model name that clients send
using RequestId = Id<struct RequestTag>;  // x-request-id

}  // namespace flotilla

template <class Tag>
struct std::hash<flotilla::Id<Tag>> {
  std::size_t operator()(const flotilla::Id<Tag>& id) const noexcept {
    return std::hash<std::string>{}(id.str());
  }
};
