#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/admin.h"
#include "api/declared.h"
#include "api/doctor.h"
#include "api/inventory.h"
#include "api/keys.h"
#include "api/node_answers.h"
#include "api/operations.h"
#include "api/request_record.h"
#include "api/transfers.h"
#include "api/usage.h"
#include "base/task.h"
#include "http/client.h"

namespace flotilla::client {

// The administration of a running server, as our own commands use it. One executor, one thread.
// Errors are the server's own words, or say that nobody answers at that address.
class AdminClient {
 public:
  AdminClient(Executor executor, http::Endpoint endpoint, std::string token);

  Task<std::vector<api::ClusterSpec>> clusters();
  Task<api::Declared> declared();
  Task<api::ClusterStatus> status(std::string cluster);
  Task<void> put_cluster(api::ClusterSpec cluster);
  Task<void> remove_cluster(std::string cluster);
  // Answers when every replica is ready or failed its first attempt.
  Task<api::LoadAnswer> load(std::string cluster, api::LoadSpec spec);
  Task<void> unload(std::string cluster, std::string alias, bool force);
  Task<api::LoadAnswer> reload(std::string cluster, api::ReloadSpec spec);
  Task<api::RequestRecord> request(std::string id);
  Task<std::vector<api::KeyShown>> keys();
  Task<api::NewKey> add_key(api::KeySpec spec);
  Task<void> change_key(std::string id, api::KeySpec spec);
  Task<void> remove_key(std::string id);
  Task<std::vector<api::UsageShown>> usage(api::UsageBy by);
  Task<std::string> usage_csv(api::UsageBy by);
  Task<std::vector<api::SettingShown>> settings();
  Task<void> put_settings(api::SettingChanges changes);
  // One replica; a restart answers when it is over.
  Task<api::ReplicaStatus> order_replica(std::string cluster, std::string alias, std::string node,
                                         api::ReplicaAction action);
  // With a fingerprint the key is stored.
  Task<api::TrustAnswer> trust_node(std::string node, std::string fingerprint);
  Task<api::BootstrapAnswer> bootstrap_node(std::string node);
  Task<std::vector<api::Finding>> doctor(std::string cluster);  // empty: all clusters
  Task<api::ModelTable> models();
  // What every node says to a load with batch.
  Task<api::PreflightRows> preflight(std::string cluster, std::string model, int context);
  // Answers when the copying begins; then it is asked how far it is.
  Task<api::Transfer> sync_model(api::SyncSpec spec);
  Task<api::Transfer> transfer(std::string id);
  Task<void> cancel_transfer(std::string id);

 private:
  Task<std::string> call(std::string method, std::string target, std::string body, Duration limit);

  http::Client client_;
  std::string token_;
};

}  // namespace flotilla::client
