#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// Copies of models to nodes that lack them: POST /admin/models/sync and /admin/transfers.
namespace flotilla::api {

struct SyncSpec {
  std::string cluster;
  std::string model;               // in models_dir
  std::vector<std::string> nodes;  // empty: all that lack it
  std::string from = {};           // the node whose file it is; empty: as most of them have it
};
Result<SyncSpec> parse_sync(std::string_view body);
std::string to_json(const SyncSpec& spec);

enum class TransferState { Waiting, Running, Done, Failed, Cancelled };

struct TransferNode {
  std::string node;
  TransferState state = TransferState::Waiting;
  std::string file;  // under way
  std::int64_t done_bytes = 0;
  std::int64_t total_bytes = 0;
  std::int64_t resumed_bytes = 0;  // that an earlier try had brought
  double bytes_per_s = 0;
  std::string error;

  std::optional<double> eta_s() const;
};

struct Transfer {
  std::string id;
  std::string cluster;
  std::string model;
  std::string source;  // a node
  std::int64_t total_bytes = 0;
  std::int64_t began_unix_ms = 0;
  double took_s = 0;
  std::vector<TransferNode> nodes;

  // Running while one of its nodes is; else the worst of theirs.
  TransferState state() const;
};
std::string to_json(const Transfer& transfer);
std::string transfers_json(const std::vector<Transfer>& transfers);
std::string transfers_array(const std::vector<Transfer>& transfers);
// Lenient: the server may be newer than the command.
Result<Transfer> read_transfer(std::string_view body);

}  // namespace flotilla::api
