#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "api/node_spec.h"
#include "base/task.h"

namespace flotilla::gateway {

// The name in an http node's URL that may have several addresses; empty: an address, localhost, or
// no URL.
std::string name_in_url(const api::NodeSpec& node);

// A node for each address: NODE-ADDRESS, with `address` set. One whose name has one address, or
// none that is known, stays as it is. `addresses` of a name: empty = as it is.
std::vector<api::NodeSpec> expand_nodes(
    const std::vector<api::NodeSpec>& nodes,
    const std::function<std::vector<std::string>(const std::string&)>& addresses);

// The addresses of the names that are declared, looked up by the system's resolver every few
// seconds. A name that once had several addresses is that of a pool of servers for good. A look-up
// that finds none changes nothing: what is there is looked at by itself. I/O thread only.
class NameWatch {
 public:
  NameWatch(Executor executor, std::function<void()> changed);
  ~NameWatch();
  NameWatch(const NameWatch&) = delete;
  NameWatch& operator=(const NameWatch&) = delete;

  void declare(std::set<std::string> names);
  // Until each declared name has been looked up once, for a few seconds at most.
  Awaitable<void> settle();
  // IPv4 ones, or IPv6 ones where there is no other: one machine may have both. Empty unless the
  // name has, or had, several.
  std::vector<std::string> addresses(const std::string& name) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace flotilla::gateway
