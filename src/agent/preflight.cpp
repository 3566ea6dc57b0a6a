#include "agent/preflight.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "agent/served_model.h"
#include "api/model_config.h"
#include "model/footprint.h"
#include "model/gguf_header.h"
#include "model/model_files.h"
#include "platform/files.h"
#include "platform/mac.h"
#include "platform/memory_info.h"

namespace flotilla::agent {
namespace {

constexpr std::size_t kModelsMax = 2000;
constexpr std::uint64_t kConfigBytesMax = 4 << 20;
constexpr std::int64_t kContextMax = 1 << 30;
constexpr std::int64_t kFolderOverheadPercent = 15;

std::string gib(std::int64_t bytes) {
  return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1024.0 * 1024.0 * 1024.0));
}

std::int64_t disk_free(const std::filesystem::path& folder) {
  std::error_code failed;
  const auto space = std::filesystem::space(folder, failed);
  return failed ? 0 : static_cast<std::int64_t>(space.available);
}

// Weights of all parts: each is a GGUF file with its own tensors.
Result<std::int64_t> weights_of(const model::ModelFileSet& files, const model::GgufHeader& first) {
  std::int64_t bytes = first.tensor_bytes;
  for (std::size_t i = 1; i < files.parts.size(); ++i) {
    const auto part = model::read_gguf_header(files.parts[i]);
    if (!part) return fail(part.error());
    bytes += part->tensor_bytes;
  }
  return bytes;
}

int at_most(std::int64_t context) {
  return static_cast<int>(std::min<std::int64_t>(context, kContextMax));
}

Result<api::ModelConfig> read_config(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "config.json";
  const auto text = platform::read_whole(file, kConfigBytesMax);
  if (!text) return fail(text.error());
  auto config = api::parse_model_config(*text);
  if (!config)
    return fail(Code::Unprocessable, fmt::format("{}: {}", file.string(), config.error().message));
  return config;
}

// What an engine will take for a folder is not ours to compute: its files, something on top, and
// what its conversations would take in a plain cache.
Result<void> fill_folder(api::PreflightAnswer& answer, const api::RunnerSpec& spec,
                         const model::ModelFileSet& files) {
  const auto config = read_config(files.first);
  if (!config) return fail(config.error());
  answer.folder = answer.estimated = true;
  answer.architecture = config->architecture;
  answer.quantization = config->quantization;
  answer.context_trained = at_most(config->context);
  answer.context = spec.context > 0 ? spec.context : answer.context_trained;
  answer.advice = api::module_warning(*config);
  answer.weights_bytes = files.bytes;
  answer.buffer_bytes = files.bytes * kFolderOverheadPercent / 100;
  // As a cache grows with what is in it, more than this is seldom there at once.
  constexpr std::int64_t usual_context = 8192;
  const std::int64_t tokens = spec.context > 0
                                  ? spec.context
                                  : std::min<std::int64_t>(answer.context_trained, usual_context);
  answer.kv_bytes = config->kv_bytes_per_token * tokens * spec.width;
  answer.need_bytes = answer.weights_bytes + answer.buffer_bytes + answer.kv_bytes;
  return {};
}

// Sets the verdict too where there is nothing to add up.
Result<void> fill(api::PreflightAnswer& answer, const api::RunnerSpec& spec) {
  const auto served = find_served(spec);
  if (served && served->by_name) {
    answer.model_present = answer.fits = true;
    answer.verdict = fmt::format("{} finds its model by name", spec.engine->name);
    return {};
  }
  answer.disk_free_bytes = disk_free(spec.models_dir);
  if (!served) return fail(served.error());
  const model::ModelFileSet* files = &served->files;
  answer.model_present = true;
  answer.model_bytes = files->bytes;
  answer.disk_free_bytes = disk_free(files->first.parent_path());
  if (served->folder) return fill_folder(answer, spec, *files);
  const auto header = model::read_gguf_header(files->first);
  if (!header) return fail(header.error());
  answer.architecture = header->architecture;
  answer.quantization = header->quantization;
  answer.context_trained = at_most(header->context_trained);
  if (header->small_quantized > 0) {
    answer.advice = fmt::format(
        "{} small matrices (fewer than 64 rows, like {}) are quantised, which costs quality and "
        "saves nothing; convert the model again with those left as they are",
        header->small_quantized, header->small_quantized_name);
  }
  const auto weights = weights_of(*files, *header);
  if (!weights) return fail(weights.error());
  const auto need =
      model::footprint(*header, *weights,
                       {.width = spec.width,
                        .context = spec.context,
                        .window = spec.window,
                        .kv_type = spec.kv_type,
                        .draft_tokens = spec.speculate.empty() ? 0 : model::kDraftTokensMax});
  if (!need) return fail(need.error());
  answer.context = static_cast<int>(need->context);
  answer.weights_bytes = need->weights;
  answer.kv_bytes = need->kv;
  answer.buffer_bytes = need->buffers;
  answer.need_bytes = need->total();
  return {};
}

// What a load may use, and of how much.
struct Room {
  std::int64_t free = 0;
  std::int64_t total = 0;
  std::string note;  // whose it is, in words
  bool on_devices = false;
};

// "0,2": the devices that a runner sees.
std::vector<int> devices_of(const api::RunnerSpec& spec) {
  std::vector<int> out;
  const auto found = spec.env.find("CUDA_VISIBLE_DEVICES");
  if (found == spec.env.end()) return out;
  std::istringstream in(found->second);
  for (std::string word; std::getline(in, word, ',');) {
    int number = 0;
    const auto [end, wrong] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (wrong == std::errc() && end == word.data() + word.size()) out.push_back(number);
  }
  return out;
}

Room room_for(const api::RunnerSpec& spec, const std::vector<api::GpuTelemetry>& gpus,
              const std::vector<int>& runners) {
  const platform::MemoryInfo memory = platform::memory_info();
  std::int64_t taken = 0;
  for (const int pid : runners) taken += platform::untouched_bytes(pid);
  Room room{.free = std::max<std::int64_t>(0, memory.available_bytes - taken),
            .total = memory.total_bytes,
            .note = memory.limited_by_group ? " (control group)" : ""};
  if (const auto metal = platform::metal_bytes(); metal && *metal < room.free) {
    room.free = room.total = *metal;
    room.note = " (what Metal may keep in memory)";
  }
  Room devices{.note = {}, .on_devices = true};
  for (const int device : devices_of(spec)) {
    const auto gpu = std::ranges::find(gpus, device, &api::GpuTelemetry::index);
    if (gpu == gpus.end()) return room;
    devices.free += gpu->memory_free;
    devices.total += gpu->memory_total;
    devices.note +=
        fmt::format("{}{} {}", devices.note.empty() ? " (device " : ", ", device, gpu->name);
  }
  if (devices.note.empty()) return room;
  devices.note += ')';
  return devices;
}

}  // namespace

api::PreflightAnswer answer_preflight(const api::Preflight& question,
                                      const std::vector<api::GpuTelemetry>& gpus,
                                      const std::vector<int>& runners) {
  api::PreflightAnswer answer;
  answer.request = question.request;
  const Room room = room_for(question.spec, gpus, runners);
  answer.free_bytes = room.free;
  answer.metal_bytes = platform::metal_bytes().value_or(0);
  answer.on_devices = room.on_devices;
  if (question.spec.synthetic) {
    answer.model_present = true;
    answer.fits = true;
    answer.verdict = "synthetic: needs no model";
    return answer;
  }
  if (const auto filled = fill(answer, question.spec); !filled) {
    answer.verdict = filled.error().message;
    return answer;
  }
  if (!answer.verdict.empty()) return answer;
  answer.fits = answer.need_bytes <= answer.free_bytes;
  answer.verdict = fmt::format(
      "{}: weights {} + KV {} (context {} × width {}, {}) + buffers {} = {}; free {} of {}{}{}",
      answer.fits ? "fits" : "does not fit", gib(answer.weights_bytes), gib(answer.kv_bytes),
      answer.context, question.spec.width, question.spec.kv_type, gib(answer.buffer_bytes),
      gib(answer.need_bytes), gib(answer.free_bytes), gib(room.total), room.note,
      answer.estimated ? " (estimated)" : "");
  return answer;
}

api::ModelList answer_list_models(const api::ListModels& question) {
  api::ModelList list;
  list.request = question.request;
  const auto scan = model::scan_models(question.models_dir, kModelsMax);
  if (!scan) {
    list.error = scan.error().message;
    return list;
  }
  list.truncated = scan->truncated;
  for (const model::FoundModel& found : scan->models) {
    api::ModelFile& file = list.models.emplace_back();
    file.path = found.path;
    file.bytes = found.files.bytes;
    file.parts = static_cast<int>(found.files.parts.size());
    file.folder = found.folder;
    if (found.folder) {
      const auto config = read_config(found.files.first);
      if (!config) {
        file.error = config.error().message;
        continue;
      }
      file.architecture = config->architecture;
      file.quantization = config->quantization;
      file.context_trained = at_most(config->context);
      continue;
    }
    const auto header = model::read_gguf_header(found.files.first);
    if (!header) {
      file.error = header.error().message;
      continue;
    }
    file.architecture = header->architecture;
    file.quantization = header->quantization;
    file.context_trained = at_most(header->context_trained);
  }
  return list;
}

}  // namespace flotilla::agent
