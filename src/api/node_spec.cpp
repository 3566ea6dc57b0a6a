#include "api/node_spec.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "api/node_json.h"

namespace flotilla::api {
namespace {

constexpr std::size_t kDevicesMax = 64;
// Of env. As a key of a fleet file YAML takes 1,024 bytes of a name, and a program's environment
// has bounds too.
constexpr std::size_t kVariablesMax = 64;
constexpr std::size_t kVariableNameMax = 100;
constexpr std::size_t kVariableValueMax = 4000;
constexpr std::string_view kHostRule =
    "must be a host's name, its address or an alias of the ssh config: letters, digits and . _ : "
    "-, "
    "the first no - (the user is a field of its own)";
constexpr std::string_view kUserRule =
    "must be a user's name: letters, digits and . _ -, the first no -";
constexpr std::string_view kPathRule =
    "must be an absolute path of letters, digits and . _ + - /, like /opt/flotilla/bin/flotilla";

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool consists_of(std::string_view text, std::string_view also) {
  return std::ranges::all_of(text, [&](char c) {
    return is_letter_or_digit(c) || also.find(c) != std::string_view::npos;
  });
}

// The variables that a node's env may hold: knobs and what accelerators read.
bool is_allowed_variable(std::string_view name) {
  constexpr std::string_view exact[] = {
      "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",     "HF_HOME",
      "RUNNER_PREFILL_BATCH", "RUNNER_STEP_TARGET_MS",   "BG_CLEAR_CACHE_EVERY",
      "SESSION_STORE_BYTES",  "SESSION_STORE_DISK_BYTES"};
  // They name a library that a runner or an engine would load and run.
  if (name == "GGML_BACKEND_PATH" || name.starts_with("OMP_TOOL")) return false;
  const auto usual = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (!std::ranges::all_of(name, usual)) return false;
  return std::ranges::find(exact, name) != std::end(exact) || name.starts_with("GGML_") ||
         name.starts_with("OMP_");
}

void read_env(json::Reader& reader, NodeSpec& node) {
  const json::Object* env = reader.object("env");
  if (env == nullptr) return;
  if (env->size() > kVariablesMax) {
    reader.fault().set(
        reader.path_of("env"),
        fmt::format("env has {} variables; at most {} are taken", env->size(), kVariablesMax));
    return;
  }
  for (const auto& [key, value] : *env) {
    const std::string name(key);
    const std::size_t value_size = value.is_string() ? value.get_string().size() : 0;
    if (name.size() > kVariableNameMax || value_size > kVariableValueMax) {
      reader.fault().set(
          reader.path_of("env"),
          fmt::format(
              "env has a variable \"{}…\" of {} bytes and a value of {}; a name has at most "
              "{}, a value {}",
              name.substr(0, 20), name.size(), value_size, kVariableNameMax, kVariableValueMax));
      return;
    }
    if (!is_allowed_variable(name)) {
      reader.fault().set(
          reader.path_of("env." + name),
          fmt::format(
              "env may not set \"{}\"; it takes RUNNER_PREFILL_BATCH, RUNNER_STEP_TARGET_MS, "
              "BG_CLEAR_CACHE_EVERY, SESSION_STORE_BYTES, SESSION_STORE_DISK_BYTES, "
              "CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES, GGML_* (but GGML_BACKEND_PATH), OMP_* "
              "(but OMP_TOOL*) "
              "and HF_HOME",
              name));
      return;
    }
    if (!value.is_string()) {
      reader.fault().set(reader.path_of("env." + name),
                         fmt::format("env.{} must be a string", name));
      return;
    }
    node.env[name] = std::string(value.as_string());
  }
}

void read_devices(json::Reader& reader, NodeSpec& node) {
  const json::Array* devices = reader.array("devices", kDevicesMax);
  if (devices == nullptr) return;
  for (const json::Value& device : *devices) {
    const auto* number = device.if_int64();
    if (number == nullptr || *number < 0 || *number > 1023)
      return reader.refuse("devices", "must be a list of device numbers, like [0, 1]");
    node.devices.push_back(static_cast<int>(*number));
  }
}

void check_ssh(json::Reader& reader, NodeSpec& node) {
  if (!is_ssh_host(node.host)) reader.refuse("host", kHostRule);
  if (!node.user.empty() && !is_ssh_user(node.user)) reader.refuse("user", kUserRule);
  if (!node.flotilla_path.empty() && !is_program_path(node.flotilla_path))
    reader.refuse("flotilla_path", kPathRule);
}

bool has_user(std::string_view url) {
  url.remove_prefix(url.find("://") + 3);
  return url.substr(0, url.find_first_of("/?#")).find('@') != std::string_view::npos;
}

void check_http(json::Reader& reader, NodeSpec& node) {
  if (node.url.empty()) {
    reader.refuse("url",
                  "must be the base URL of an OpenAI-compatible server, e.g. "
                  "http://10.0.0.5:8080/v1");
  } else if (!node.url.starts_with("http://") && !node.url.starts_with("https://")) {
    reader.refuse("url", "must begin with http:// or https://");
  } else if (has_user(node.url)) {
    // Never named with its value: there is a secret in it, and a url is shown.
    reader.fault().set(reader.path_of("url"),
                       "url must not hold a user or password (USER:PASSWORD@); give the server's "
                       "key as api_key");
  }
}

// What belongs to another way of reaching the node is a mistake, not to be dropped in silence.
void check_transport(json::Reader& reader, NodeSpec& node) {
  if (node.transport == "ssh") {
    check_ssh(reader, node);
  } else {
    const std::pair<const char*, bool> given[] = {{"host", !node.host.empty()},
                                                  {"user", !node.user.empty()},
                                                  {"port", node.port != 0},
                                                  {"flotilla_path", !node.flotilla_path.empty()}};
    for (const auto& [name, is_given] : given)
      if (is_given) reader.refuse(name, "is for transport \"ssh\" only");
  }
  if (node.transport == "http") {
    check_http(reader, node);
  } else if (!node.url.empty()) {
    reader.refuse("url", "is for transport \"http\" only");
  } else if (!node.api_key.empty()) {
    // Never named with its value: it is a secret.
    reader.fault().set(reader.path_of("api_key"), "api_key is for transport \"http\" only");
  }
}

std::optional<int> read_number(std::string_view text, int min, int max) {
  int number = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (wrong != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number < min || number > max ? std::nullopt : std::optional(number);
}

// "[ssh://][user@]host[:port]"; "[v6 address]:port".
Result<void> read_ssh_target(std::string_view text, NodeSpec& node) {
  std::string_view rest = text;
  if (rest.starts_with("ssh://")) rest.remove_prefix(6);
  if (const auto at = rest.find('@'); at != std::string_view::npos) {
    node.user = std::string(rest.substr(0, at));
    rest.remove_prefix(at + 1);
    if (!is_ssh_user(node.user))
      return fail(Code::InvalidArgument, fmt::format("user \"{}\" {}", node.user, kUserRule));
  }
  std::string_view port;
  if (rest.starts_with('[')) {
    const auto end = rest.find(']');
    if (end == std::string_view::npos)
      return fail(Code::InvalidArgument, fmt::format("\"{}\": the ] is missing", text));
    port = rest.substr(end + 1);
    rest = rest.substr(1, end - 1);
  } else if (const auto colon = rest.find(':');
             colon != std::string_view::npos && rest.find(':', colon + 1) == rest.npos) {
    port = rest.substr(colon);
    rest = rest.substr(0, colon);
  }
  node.host = std::string(rest);
  if (!is_ssh_host(node.host))
    return fail(Code::InvalidArgument, fmt::format("host \"{}\" {}", node.host, kHostRule));
  if (port.empty()) return {};
  const auto number = read_number(port.substr(1), 1, 65535);
  if (!port.starts_with(':') || !number)
    return fail(Code::InvalidArgument, fmt::format("\"{}\": a port is 1-65535", text));
  node.port = *number;
  return {};
}

Result<void> read_where(std::string_view where, NodeSpec& node) {
  if (where.starts_with("http://") || where.starts_with("https://")) {
    node.transport = "http";
    node.url = std::string(where);
    return {};
  }
  if (where.find("://") != std::string_view::npos && !where.starts_with("ssh://"))
    return fail(
        Code::InvalidArgument,
        fmt::format("node {}: \"{}\" is no http://, https:// or ssh:// address", node.id, where));
  node.transport = "ssh";
  if (auto read = read_ssh_target(where, node); !read)
    return fail(read.error().code, fmt::format("node {}: {}", node.id, read.error().message));
  return {};
}

}  // namespace

bool is_id(std::string_view text) {
  const auto lower_or_digit = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  };
  return !text.empty() && text.size() <= 41 && lower_or_digit(text.front()) &&
         std::ranges::all_of(text, [&](char c) { return lower_or_digit(c) || c == '-'; });
}

bool is_ssh_host(std::string_view text) {
  return !text.empty() && text.size() <= 255 && text.front() != '-' && consists_of(text, "._:-");
}

bool is_ssh_user(std::string_view text) {
  return !text.empty() && text.size() <= 64 && text.front() != '-' && consists_of(text, "._-");
}

bool is_program_path(std::string_view text) {
  return text.size() > 1 && text.size() <= 1000 && text.front() == '/' && text.back() != '/' &&
         consists_of(text, "._+-/");
}

NodeSpec read_node(json::Reader reader) {
  NodeSpec node;
  node.id = reader.string("id").value_or("");
  if (node.id.empty()) {
    reader.require("id", "a name for the node");
  } else if (!is_id(node.id)) {
    reader.refuse("id", kIdRule);
  }
  node.label = reader.string("label", 200).value_or(node.id);
  node.transport = reader.choice("transport", {"local", "ssh", "http"}).value_or("local");
  node.host = reader.string("host", 1000).value_or("");
  node.user = reader.string("user", 1000).value_or("");
  node.port = static_cast<int>(reader.integer("port", 1, 65535).value_or(0));
  node.flotilla_path = reader.string("flotilla_path", 4000).value_or("");
  node.url = reader.string("url", 2000).value_or("");
  node.api_key = reader.string("api_key", 2000).value_or("");
  node.upstream_model = reader.string("upstream_model", 500).value_or("");
  node.models_dir = reader.string("models_dir", 4000).value_or("");
  node.threads = static_cast<int>(reader.integer("threads", 0, 1024).value_or(0));
  read_devices(reader, node);
  read_env(reader, node);
  check_transport(reader, node);
  reader.refuse_unknown();
  return node;
}

json::Object node_object(const NodeSpec& node, bool with_secrets) {
  json::Object out{{"id", node.id}, {"label", node.label}, {"transport", node.transport}};
  const auto text = [&](const char* name, const std::string& value) {
    if (!value.empty()) out[name] = value;
  };
  text("host", node.host);
  text("user", node.user);
  if (node.port != 0) out["port"] = node.port;
  text("flotilla_path", node.flotilla_path);
  text("url", node.url);
  if (with_secrets) text("api_key", node.api_key);
  text("upstream_model", node.upstream_model);
  text("models_dir", node.models_dir);
  if (node.threads != 0) out["threads"] = node.threads;
  if (!node.devices.empty()) {
    json::Array devices;
    for (const int device : node.devices) devices.emplace_back(device);
    out["devices"] = std::move(devices);
  }
  if (!node.env.empty()) {
    json::Object env;
    for (const auto& [name, value] : node.env) env[name] = value;
    out["env"] = std::move(env);
  }
  return out;
}

Result<NodeSpec> parse_node(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  json::Fault fault;
  NodeSpec node = read_node(json::Reader(*object, fault));
  if (fault) return fault.unexpected();
  return node;
}

Result<std::vector<NodeSpec>> parse_node_shorthand(std::string_view text) {
  const auto equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const auto star = name.find('*');
  NodeSpec node;
  node.id = std::string(name.substr(0, star));
  node.label = node.id;
  if (!is_id(node.id))
    return fail(Code::InvalidArgument, fmt::format("node id \"{}\" {}", node.id, kIdRule));
  if (equals != std::string_view::npos) {
    if (auto read = read_where(text.substr(equals + 1), node); !read) return fail(read.error());
  }
  if (star == std::string_view::npos) return std::vector{std::move(node)};
  const auto count = read_number(name.substr(star + 1), 1, kNodesMax);
  if (!count || node.transport == "http") {
    return fail(Code::InvalidArgument,
                fmt::format("node \"{}\": NAME*COUNT makes COUNT (1-{}) nodes on this machine, "
                            "NAME*COUNT=HOST one for each of HOST's devices",
                            text, kNodesMax));
  }
  std::vector<NodeSpec> nodes;
  for (int i = 1; i <= *count; ++i) {
    NodeSpec one = node;
    one.id = fmt::format("{}-{}", node.id, i);
    one.label = one.id;
    if (one.transport == "ssh") one.devices = {i - 1};
    nodes.push_back(std::move(one));
  }
  return nodes;
}

}  // namespace flotilla::api
