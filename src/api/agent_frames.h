#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/engine_template.h"
#include "base/result.h"

// What a gateway and a machine's agent say to each other over one byte stream: frames of 4 bytes
// big-endian length + that much JSON, {"type": …, …}. The agent's first frame is AgentHello or
// AgentRefused; both sides send a Heartbeat every 2 s. Unknown members are ignored and unknown
// types are skipped, so either side may be the newer one; what must not be misunderstood raises
// kAgentProtocol.
namespace flotilla::api {

inline constexpr int kAgentProtocol = 1;
inline constexpr std::size_t kAgentFrameMax = std::size_t{1} << 20;

// How a runner is to be started. 0 and empty mean: the runner decides.
struct RunnerSpec {
  std::string model = {};       // absolute, or relative to models_dir
  std::string models_dir = {};  // on the agent's machine
  int width = 1;
  int context = 0;
  int window = 0;
  int threads = 0;
  std::string kv_type = "f16";
  int gpu_layers = 0;
  std::string chat_template = {};
  std::string alias = {};
  std::string node = {};
  std::string speculate = {};
  bool synthetic = false;  // the fake engine: no model file is looked for
  std::map<std::string, std::string> env = {};
  // Not our runner, or, of a model that is a folder, this in its place.
  std::optional<EngineSpec> engine = {};

  bool operator==(const RunnerSpec&) const = default;
};

// What a runner says of itself once its socket accepts.
struct RunnerInfo {
  int protocol = 0;
  std::string description = {};
  std::string quantization = {};
  int context = 0;
  int context_trained = 0;
  int width = 1;
  std::string width_reason = {};
  bool batch = false;
  std::string batch_reason = {};
  std::int64_t model_bytes = 0;
  std::int64_t kv_bytes = 0;
  std::string numerics = {};
  bool exact_resume = false;
  std::string kernels = {};

  bool operator==(const RunnerInfo&) const = default;
};

// Both ways.
struct Heartbeat {
  std::int64_t sent_unix_ms = 0;  // the sender's clock
  std::int64_t echo_unix_ms = 0;  // last one heard from the other side: the round trip's measure
};

// --- gateway → agent ---

// `replica` is unique among all starts of a gateway. Starting one that already runs with the same
// generation repeats its events and starts nothing.
struct StartReplica {
  std::string replica = {};
  std::string generation = {};  // opaque: what a gateway compares to know that it may adopt
  RunnerSpec spec = {};
};
// SIGTERM, then SIGKILL after the grace. Ends in ReplicaExited; for an unknown replica too.
struct StopReplica {
  std::string replica = {};
  std::int64_t grace_ms = 5000;
};
struct ListModels {
  std::int64_t request = 0;  // echoed in the answer
  std::string models_dir = {};
};
struct Preflight {
  std::int64_t request = 0;
  RunnerSpec spec = {};
  bool hash = false;  // the model's hash, too, where it is known within a few seconds
};
// A piece of a runner's log.
struct ReadLog {
  std::int64_t request = 0;
  std::string node = {};
  std::string alias = {};
  std::int64_t offset = 0;  // < 0: so many bytes before its end
};
// Runners end and so does the agent; without it a closed link keeps them for AGENT_GRACE_S.
struct EndAgent {
  std::int64_t grace_ms = 5000;
};
// First frame of an agent that found another one holding this machine's run directory: from then on
// it is a pipe to that one, if both serve the same gateway.
struct AttachAgent {
  std::string state_id = {};
};
using AgentCommand = std::variant<Heartbeat, StartReplica, StopReplica, ListModels, Preflight,
                                  EndAgent, AttachAgent, ReadLog>;

// --- agent → gateway ---

struct HeldReplica {
  std::string replica = {};
  std::string generation = {};
  std::string socket = {};  // of an engine its address, 127.0.0.1:PORT
  int pid = 0;
  std::optional<RunnerInfo> info = {};  // absent: still loading
  std::string engine = {};              // its template's name; what it says of itself is not known
};
struct AgentHello {
  int protocol = kAgentProtocol;
  std::string version = {};   // flotilla's
  std::string platform = {};  // linux-x86_64
  std::string machine_id = {};
  std::string run_dir = {};
  int cores = 0;
  std::int64_t memory_bytes = 0;
  std::vector<HeldReplica> holds = {};
};
// Instead of the hello: another gateway's agent owns this machine's run directory.
struct AgentRefused {
  std::string reason = {};
};
struct ReplicaSpawned {
  std::string replica = {};
  int pid = 0;
  std::string socket = {};       // connects only after ReplicaReady; of an engine its address
  std::string engine = {};       // its template's name: who asks it finds out when it is ready
  std::int64_t model_bytes = 0;  // of an engine
};
struct ReplicaLoading {
  std::string replica = {};
  std::int64_t loaded_bytes = 0;
  std::int64_t total_bytes = 0;
};
struct ReplicaReady {
  std::string replica = {};
  RunnerInfo info = {};
};
// The replica's last event, also when it could not be started at all.
struct ReplicaExited {
  std::string replica = {};
  std::optional<int> exit_code = {};
  std::optional<int> signal = {};
  // It died of what it did itself (SIGSEGV, ABRT, BUS, FPE, ILL, non-zero exit, killed for memory):
  // the requests inside are suspects. False for SIGKILL by someone and for a stop that was asked
  // for.
  bool own_fault = false;
  bool was_ready = false;
  std::string reason = {};    // in words, for status
  std::string log_tail = {};  // its last lines on stderr
  std::string named = {};     // the request whose doing its end was, by its breadcrumb
  bool port_taken = false;    // an engine's, by another program before it listened there
};
struct ReplicaUsage {
  std::string replica = {};
  std::int64_t rss_bytes = 0;
};
struct GpuTelemetry {
  int index = 0;
  std::string name = {};
  std::int64_t memory_total = 0;
  std::int64_t memory_used = 0;
  std::int64_t memory_free = 0;
  std::optional<double> busy_percent = {};
  std::optional<double> temperature_c = {};
  std::optional<double> power_w = {};
};
struct AgentTelemetry {
  std::int64_t memory_total = 0;
  std::int64_t memory_available = 0;
  double cpu_load = 0;  // cores busy, 0 … cores
  int cores = 0;
  std::vector<ReplicaUsage> replicas = {};
  std::vector<GpuTelemetry> gpus = {};
};
struct ModelFile {
  std::string path = {};  // relative to models_dir; of a split its first part
  std::int64_t bytes = 0;
  int parts = 1;
  std::string architecture = {};
  std::string quantization = {};
  int context_trained = 0;
  bool folder = false;     // config.json and *.safetensors, for engines that are not ours
  std::string error = {};  // why it cannot be loaded; empty if it can
};
struct ModelList {
  std::int64_t request = 0;
  std::vector<ModelFile> models = {};
  bool truncated = false;  // more than fit in one frame
  std::string error = {};
};
struct PreflightAnswer {
  std::int64_t request = 0;
  bool model_present = false;
  std::int64_t model_bytes = 0;
  std::string architecture = {};
  std::string quantization = {};
  int context_trained = 0;
  int context = 0;  // what the numbers below are for
  std::int64_t weights_bytes = 0;
  std::int64_t kv_bytes = 0;
  std::int64_t buffer_bytes = 0;
  std::int64_t need_bytes = 0;
  std::int64_t free_bytes = 0;
  bool fits = false;
  std::string verdict = {};  // in words
  std::string hash = {};  // SHA-256 in hex, of a split that of its parts' hashes; empty: not known
  std::int64_t disk_free_bytes = 0;  // where the models are
  bool on_devices = false;           // free_bytes are those of the devices that the spec names
  std::string advice = {};           // what would make it faster
  bool folder = false;               // a model folder, which an engine has to serve
  bool estimated = false;            // the bytes above are
  std::int64_t metal_bytes = 0;      // what Metal may keep in memory at once; 0: there is none
};
// At most 8 KiB; empty: there is no more yet.
struct LogText {
  std::int64_t request = 0;
  std::string text = {};
  std::int64_t next = 0;  // offset of what follows
  std::string error = {};
};
using AgentEvent =
    std::variant<AgentHello, AgentRefused, Heartbeat, ReplicaSpawned, ReplicaLoading, ReplicaReady,
                 ReplicaExited, AgentTelemetry, ModelList, PreflightAnswer, LogText>;

// A whole frame, length included; text that is not UTF-8 is repaired. An event always fits: lists
// and logs that would burst the frame are cut (ModelList says so). A command that does not (its
// texts come from requests) is TooLarge.
Result<std::string> encode_frame(const AgentCommand& command);
std::string encode_frame(const AgentEvent& event);

// The JSON of one frame. An unknown type: NotFound, to be skipped.
Result<AgentCommand> parse_command(std::string_view json);
Result<AgentEvent> parse_event(std::string_view json);

// A line that `flotilla runner --supervised` prints.
struct RunnerLoading {
  std::int64_t loaded_bytes = 0;
  std::int64_t total_bytes = 0;
};
struct RunnerFailed {
  std::string error = {};
};
using RunnerLine = std::variant<RunnerLoading, RunnerInfo, RunnerFailed>;
Result<RunnerLine> parse_runner_line(std::string_view line);

// Cuts a byte stream into frames, whatever the borders of the chunks. Holds at most one frame more
// than the chunks fed. After an error (a length of 0 or beyond kAgentFrameMax) it stays failed: the
// stream has lost its place.
class FrameReader {
 public:
  void feed(std::string_view chunk);
  // The next whole frame's JSON; nullopt: more bytes are needed.
  Result<std::optional<std::string>> next();

 private:
  std::string buffer_;
  std::size_t begin_ = 0;
  bool broken_ = false;
};

}  // namespace flotilla::api
