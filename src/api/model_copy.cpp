#include "api/model_copy.h"

#include <fmt/format.h>

#include "api/json.h"

namespace flotilla::api {
namespace {

constexpr std::size_t kFilesMax = 10'000;
constexpr std::size_t kTextMax = 64 << 10;
constexpr CopyTask kTasks[] = {CopyTask::List, CopyTask::Look, CopyTask::Hash, CopyTask::Send,
                               CopyTask::Receive};

json::Array files_array(const std::vector<CopyFile>& files) {
  json::Array out;
  for (const CopyFile& file : files) {
    out.push_back(json::Object{
        {"path", file.path}, {"bytes", file.bytes}, {"have", file.have}, {"whole", file.whole}});
  }
  return out;
}

std::int64_t read_bytes(json::Reader& in, const char* name) {
  return in.integer(name, 0, INT64_MAX).value_or(0);
}

std::vector<CopyFile> read_files(json::Reader& in) {
  std::vector<CopyFile> out;
  const json::Array* files = in.array("files", kFilesMax);
  for (std::size_t i = 0; files != nullptr && i < files->size(); ++i) {
    const json::Object* object = (*files)[i].if_object();
    if (object == nullptr) continue;
    json::Reader file(*object, in.fault(), json::item_path("files", i));
    CopyFile& one = out.emplace_back();
    one.path = file.string("path", kTextMax).value_or("");
    one.bytes = read_bytes(file, "bytes");
    one.have = read_bytes(file, "have");
    one.whole = file.boolean("whole").value_or(false);
  }
  return out;
}

}  // namespace

const char* to_string(CopyTask task) {
  switch (task) {
    case CopyTask::List: return "list";
    case CopyTask::Look: return "look";
    case CopyTask::Hash: return "hash";
    case CopyTask::Send: return "send";
    case CopyTask::Receive: return "receive";
  }
  return "";
}

Result<CopyTask> parse_copy_task(std::string_view name) {
  for (const CopyTask task : kTasks) {
    if (name == to_string(task)) return task;
  }
  return fail(Code::InvalidArgument, fmt::format("there is no copy task \"{}\"", name));
}

std::string to_json(const CopyOrder& order) {
  return json::to_text(json::Object{{"models_dir", order.models_dir},
                                    {"model", order.model},
                                    {"files", files_array(order.files)},
                                    {"path", order.path},
                                    {"bytes", order.bytes},
                                    {"offset", order.offset},
                                    {"to", order.to}});
}

Result<CopyOrder> parse_copy_order(std::string_view text) {
  const auto object = json::parse_object(text);
  if (!object) return fail(object.error());
  json::Fault fault;
  json::Reader in(*object, fault);
  CopyOrder order;
  order.models_dir = in.string("models_dir", kTextMax).value_or("");
  order.model = in.string("model", kTextMax).value_or("");
  order.files = read_files(in);
  order.path = in.string("path", kTextMax).value_or("");
  order.bytes = read_bytes(in, "bytes");
  order.offset = read_bytes(in, "offset");
  order.to = in.string("to").value_or("");
  if (fault) return fault.unexpected();
  return order;
}

std::string to_json(const CopyAnswer& answer) {
  if (!answer.error.empty()) return json::to_text(json::Object{{"error", answer.error}});
  return json::to_text(json::Object{{"files", files_array(answer.files)},
                                    {"free_bytes", answer.free_bytes},
                                    {"have", answer.have},
                                    {"done", answer.done},
                                    {"hash", answer.hash}});
}

Result<CopyAnswer> parse_copy_answer(std::string_view text) {
  const auto object = json::parse_object(text);
  if (!object) return fail(Code::BadGateway, "it does not answer as a flotilla of this version");
  json::Fault fault;
  json::Reader in(*object, fault);
  if (auto error = in.string("error")) return fail(Code::Unprocessable, std::move(*error));
  CopyAnswer answer;
  answer.files = read_files(in);
  answer.free_bytes = read_bytes(in, "free_bytes");
  answer.have = read_bytes(in, "have");
  answer.done = in.boolean("done").value_or(false);
  answer.hash = in.string("hash").value_or("");
  if (fault) return fault.unexpected();
  return answer;
}

}  // namespace flotilla::api
