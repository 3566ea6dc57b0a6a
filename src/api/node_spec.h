#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flotilla::api {

// A machine, or one device of it, and how it is reached.
struct NodeSpec {
  std::string id;
  std::string label;
  std::string transport = "local";  // local, ssh, http
  std::string host;                 // ssh only: a name, an address or an alias of the ssh config
  std::string user;                 // ssh only; empty = as the ssh config says
  int port = 0;                     // ssh only; 0 = as the ssh config says
  std::string flotilla_path;        // ssh only; empty = searched for
  std::string url;                  // http only: base of an OpenAI-compatible server
  std::string address;              // of the url's name the one that this node is; never written
  std::string api_key;              // http only; never written by to_json
  std::string upstream_model;       // http only; empty = the first that the server lists
  std::string models_dir;
  int threads = 0;           // 0 = cores / replicas on that machine
  std::vector<int> devices;  // accelerators that its runner sees; empty = all
  std::map<std::string, std::string> env;

  bool is_local() const { return transport == "local"; }
  // Its runners are an agent's: on this machine or by ssh.
  bool has_agent() const { return transport != "http"; }
  bool operator==(const NodeSpec&) const = default;
};

// What a person may write into a field that reaches an ssh command line. Each rule allows nothing
// that ssh or a shell reads otherwise: no leading dash, no space, quote, @, % or control character.
bool is_ssh_host(std::string_view text);
bool is_ssh_user(std::string_view text);
bool is_program_path(std::string_view text);  // absolute

// POST /admin/nodes/test: a node by itself.
Result<NodeSpec> parse_node(std::string_view body);

// As on a command line: "local*2" -> local-1, local-2; "name" -> one node on this machine;
// "name=[ssh://][user@]host[:port]" -> an ssh node; "name*4=host" -> one node for each of its
// devices 0-3; "name=http://…" -> an http node.
Result<std::vector<NodeSpec>> parse_node_shorthand(std::string_view text);

}  // namespace flotilla::api
