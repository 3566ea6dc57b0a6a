#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/agent_frames.h"
#include "base/result.h"

namespace flotilla::api {

// One model file of a cluster's nodes. A file of the same name and another size, quantisation or
// architecture is another file: it differs.
struct FoundModel {
  ModelFile file;  // as the first node has it
  std::vector<std::string> nodes;
  std::vector<std::string> missing;
  std::vector<std::string> differing;
};

// What one node says of its models folder.
struct NodeModels {
  std::string node;
  std::string models_dir;
  std::vector<ModelFile> models;
  bool truncated = false;
  std::string error;  // why it has none to show
};

// The nodes' files side by side, by path.
std::vector<FoundModel> merge_models(const std::vector<NodeModels>& nodes);

// GET /admin/clusters/{c}/models; and those of all clusters: GET /admin/models.
struct ClusterModels {
  std::string cluster;
  std::vector<NodeModels> nodes;
};
std::string to_json(const ClusterModels& models);
std::string to_json(const std::vector<ClusterModels>& clusters);
// The latter as a command shows it, by cluster.
struct ModelRow {
  std::string cluster;
  FoundModel model;
};
struct ModelTrouble {
  std::string cluster;
  std::string node;
  std::string error;  // why it has none to show
};
struct ModelTable {
  std::vector<std::string> clusters;  // all, also one that has none
  std::vector<ModelRow> rows;
  std::vector<ModelTrouble> troubles;
};
Result<ModelTable> read_models(std::string_view body);

// What one node says to a load: can it be reached, is the model there and the same as elsewhere, is
// there room.
struct NodePreflight {
  std::string node;
  PreflightAnswer answer;
  int sharing = 1;    // replicas of this load on the same machine: they share what is free
  std::string error;  // why the node could not be asked
  std::string version;
  bool outdated = false;  // its flotilla is another version than the gateway's
  std::string unserved;   // why no engine would take the model, and what to configure
  std::string differs;    // how its model differs from the other nodes'; empty = the same
  std::string fix;        // what would do about the first thing that is wrong

  bool fits() const;
  bool loadable() const;  // the model is there and whole, whatever the memory
  // Metal on that machine keeps less in memory than its replicas need.
  bool beyond_metal() const;
  // What is left on the machine once all its replicas are loaded; below 0 = so much is missing.
  std::int64_t spare_bytes() const;
  // What is wrong with it, or that it fits.
  std::string words() const;
};

// The command that lets Metal keep so much in memory, and a little more.
std::string raise_metal(std::int64_t bytes);

// Fills `differs` and `fix`: each node's model against the one that most of them have. A path in
// models_dir can be copied by us.
void compare_nodes(std::vector<NodePreflight>& nodes, const std::string& cluster,
                   const std::string& model);

struct PreflightReport {
  std::string cluster;
  std::string model;
  bool batch = false;
  int width = 1;
  std::vector<NodePreflight> nodes;
};

// GET /admin/clusters/{c}/preflight: the verdict, and the node that limits it.
std::string to_json(const PreflightReport& report);
// The same as a command shows it.
struct PreflightRow {
  std::string node;
  bool fits = false;
  int replicas_here = 1;
  std::int64_t need_bytes = 0;  // of each
  std::int64_t free_bytes = 0;
  std::int64_t disk_free_bytes = 0;
  std::string verdict;
  std::string fix;
};
struct PreflightRows {
  bool fits = false;
  std::string limiting_node;
  std::vector<PreflightRow> nodes;
};
Result<PreflightRows> read_preflight(std::string_view body);

}  // namespace flotilla::api
