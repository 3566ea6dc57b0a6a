#pragma once

#include <concepts>

#include "api/agent_frames.h"

// The members of each frame, named once for reading and writing alike: `v(name, member)` is called
// for each. For agent_frames.cpp alone.
namespace flotilla::api {

template <class T, class Frame>
concept Is = std::same_as<std::remove_const_t<T>, Frame>;

template <class V>
void fields(V& v, Is<RunnerSpec> auto& m) {
  v("model", m.model);
  v("models_dir", m.models_dir);
  v("width", m.width);
  v("context", m.context);
  v("window", m.window);
  v("threads", m.threads);
  v("kv_type", m.kv_type);
  v("gpu_layers", m.gpu_layers);
  v("chat_template", m.chat_template);
  v("alias", m.alias);
  v("node", m.node);
  v("speculate", m.speculate);
  v("synthetic", m.synthetic);
  v("env", m.env);
  v("engine", m.engine);
}

template <class V>
void fields(V& v, Is<EngineSpec> auto& m) {
  v("name", m.name);
  v("command", m.command);
  v("env", m.env);
  v("cwd", m.cwd);
  v("model_by_name", m.model_by_name);
  v("folders_only", m.folders_only);
}

template <class V>
void fields(V& v, Is<RunnerInfo> auto& m) {
  v("protocol", m.protocol);
  v("description", m.description);
  v("quantization", m.quantization);
  v("context", m.context);
  v("context_trained", m.context_trained);
  v("width", m.width);
  v("width_reason", m.width_reason);
  v("batch", m.batch);
  v("batch_reason", m.batch_reason);
  v("model_bytes", m.model_bytes);
  v("kv_bytes", m.kv_bytes);
  v("numerics", m.numerics);
  v("exact_resume", m.exact_resume);
  v("kernels", m.kernels);
}

template <class V>
void fields(V& v, Is<Heartbeat> auto& m) {
  v("sent_unix_ms", m.sent_unix_ms);
  v("echo_unix_ms", m.echo_unix_ms);
}

template <class V>
void fields(V& v, Is<StartReplica> auto& m) {
  v("replica", m.replica);
  v("generation", m.generation);
  v("spec", m.spec);
}

template <class V>
void fields(V& v, Is<StopReplica> auto& m) {
  v("replica", m.replica);
  v("grace_ms", m.grace_ms);
}

template <class V>
void fields(V& v, Is<ListModels> auto& m) {
  v("request", m.request);
  v("models_dir", m.models_dir);
}

template <class V>
void fields(V& v, Is<Preflight> auto& m) {
  v("request", m.request);
  v("spec", m.spec);
  v("hash", m.hash);
}

template <class V>
void fields(V& v, Is<EndAgent> auto& m) {
  v("grace_ms", m.grace_ms);
}

template <class V>
void fields(V& v, Is<AttachAgent> auto& m) {
  v("state_id", m.state_id);
}

template <class V>
void fields(V& v, Is<ReadLog> auto& m) {
  v("request", m.request);
  v("node", m.node);
  v("alias", m.alias);
  v("offset", m.offset);
}

template <class V>
void fields(V& v, Is<LogText> auto& m) {
  v("request", m.request);
  v("text", m.text);
  v("next", m.next);
  v("error", m.error);
}

template <class V>
void fields(V& v, Is<HeldReplica> auto& m) {
  v("replica", m.replica);
  v("generation", m.generation);
  v("socket", m.socket);
  v("pid", m.pid);
  v("info", m.info);
  v("engine", m.engine);
}

template <class V>
void fields(V& v, Is<AgentHello> auto& m) {
  v("protocol", m.protocol);
  v("version", m.version);
  v("platform", m.platform);
  v("machine_id", m.machine_id);
  v("run_dir", m.run_dir);
  v("cores", m.cores);
  v("memory_bytes", m.memory_bytes);
  v("holds", m.holds);
}

template <class V>
void fields(V& v, Is<AgentRefused> auto& m) {
  v("reason", m.reason);
}

template <class V>
void fields(V& v, Is<ReplicaSpawned> auto& m) {
  v("replica", m.replica);
  v("pid", m.pid);
  v("socket", m.socket);
  v("engine", m.engine);
  v("model_bytes", m.model_bytes);
}

template <class V>
void fields(V& v, Is<ReplicaLoading> auto& m) {
  v("replica", m.replica);
  v("loaded_bytes", m.loaded_bytes);
  v("total_bytes", m.total_bytes);
}

template <class V>
void fields(V& v, Is<ReplicaReady> auto& m) {
  v("replica", m.replica);
  v("info", m.info);
}

template <class V>
void fields(V& v, Is<ReplicaExited> auto& m) {
  v("replica", m.replica);
  v("exit_code", m.exit_code);
  v("signal", m.signal);
  v("own_fault", m.own_fault);
  v("was_ready", m.was_ready);
  v("reason", m.reason);
  v("log_tail", m.log_tail);
  v("named", m.named);
  v("port_taken", m.port_taken);
}

template <class V>
void fields(V& v, Is<ReplicaUsage> auto& m) {
  v("replica", m.replica);
  v("rss_bytes", m.rss_bytes);
}

template <class V>
void fields(V& v, Is<GpuTelemetry> auto& m) {
  v("index", m.index);
  v("name", m.name);
  v("memory_total", m.memory_total);
  v("memory_used", m.memory_used);
  v("memory_free", m.memory_free);
  v("busy_percent", m.busy_percent);
  v("temperature_c", m.temperature_c);
  v("power_w", m.power_w);
}

template <class V>
void fields(V& v, Is<AgentTelemetry> auto& m) {
  v("memory_total", m.memory_total);
  v("memory_available", m.memory_available);
  v("cpu_load", m.cpu_load);
  v("cores", m.cores);
  v("replicas", m.replicas);
  v("gpus", m.gpus);
}

template <class V>
void fields(V& v, Is<ModelFile> auto& m) {
  v("path", m.path);
  v("bytes", m.bytes);
  v("parts", m.parts);
  v("architecture", m.architecture);
  v("quantization", m.quantization);
  v("context_trained", m.context_trained);
  v("folder", m.folder);
  v("error", m.error);
}

template <class V>
void fields(V& v, Is<ModelList> auto& m) {
  v("request", m.request);
  v("models", m.models);
  v("truncated", m.truncated);
  v("error", m.error);
}

template <class V>
void fields(V& v, Is<PreflightAnswer> auto& m) {
  v("request", m.request);
  v("model_present", m.model_present);
  v("model_bytes", m.model_bytes);
  v("architecture", m.architecture);
  v("quantization", m.quantization);
  v("context_trained", m.context_trained);
  v("context", m.context);
  v("weights_bytes", m.weights_bytes);
  v("kv_bytes", m.kv_bytes);
  v("buffer_bytes", m.buffer_bytes);
  v("need_bytes", m.need_bytes);
  v("free_bytes", m.free_bytes);
  v("fits", m.fits);
  v("verdict", m.verdict);
  v("hash", m.hash);
  v("disk_free_bytes", m.disk_free_bytes);
  v("on_devices", m.on_devices);
  v("advice", m.advice);
  v("folder", m.folder);
  v("estimated", m.estimated);
  v("metal_bytes", m.metal_bytes);
}

template <class V>
void fields(V& v, Is<RunnerLoading> auto& m) {
  v("loaded_bytes", m.loaded_bytes);
  v("total_bytes", m.total_bytes);
}

template <class V>
void fields(V& v, Is<RunnerFailed> auto& m) {
  v("error", m.error);
}

}  // namespace flotilla::api
