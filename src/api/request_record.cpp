#include "api/request_record.h"

#include "api/json.h"

namespace flotilla::api {
namespace {

json::Object object_of(const RequestRecord& request) {
  return {{"id", request.id},
          {"model", request.model},
          {"key", request.owner},
          {"peer", request.peer},
          {"phase", request.phase},
          {"node", request.node.empty() ? json::Value() : json::Value(request.node)},
          {"stream", request.stream},
          {"arrived_unix_ms", request.arrived_unix_ms},
          {"queued_ms", request.queued_ms},
          {"ttft_ms", request.ttft_ms ? json::Value(*request.ttft_ms) : json::Value()},
          {"took_ms", request.took_ms},
          {"prompt_tokens", request.prompt_tokens},
          {"cached_tokens", request.cached_tokens},
          {"completion_tokens", request.completion_tokens},
          {"prefill_chunks", request.prompt_passes},
          {"gaps", request.gaps},
          {"gap_max_ms", request.gap_max_ms},
          {"retries", request.retries},
          {"resumed", request.resumed},
          {"status", request.status != 0 ? json::Value(request.status) : json::Value()},
          {"end", request.end.empty() ? json::Value() : json::Value(request.end)}};
}

}  // namespace

std::string to_json(const RequestRecord& request, Viewer viewer) {
  json::Object out = object_of(request);
  if (viewer == Viewer::Owner) out.erase("peer");
  json::Array moments;
  for (const RequestMoment& moment : request.moments) {
    json::Object one{{"at_ms", moment.at_ms}, {"what", moment.what}};
    if (!moment.detail.empty()) one["detail"] = moment.detail;
    moments.push_back(std::move(one));
  }
  out["timeline"] = std::move(moments);
  return json::to_text(out);
}

Result<RequestRecord> read_request(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  json::Fault fault;
  json::Reader reader(*object, fault);
  RequestRecord out;
  const auto count = [&reader](std::string_view name) {
    return static_cast<std::uint64_t>(reader.integer(name, 0, INT64_MAX).value_or(0));
  };
  out.id = reader.string("id").value_or("");
  out.model = reader.string("model").value_or("");
  out.peer = reader.string("peer").value_or("");
  out.phase = reader.string("phase").value_or("");
  out.node = reader.string("node").value_or("");
  out.end = reader.string("end").value_or("");
  out.took_ms = reader.number("took_ms", 0, 1e15).value_or(0);
  out.prompt_tokens = count("prompt_tokens");
  out.cached_tokens = count("cached_tokens");
  out.completion_tokens = count("completion_tokens");
  out.prompt_passes = static_cast<int>(count("prefill_chunks"));
  const json::Array* moments = reader.array("timeline", 1000);
  for (std::size_t i = 0; moments != nullptr && i < moments->size(); ++i) {
    const json::Object* one = (*moments)[i].if_object();
    if (one == nullptr) continue;
    json::Reader moment(*one, fault);
    out.moments.push_back({.at_ms = moment.number("at_ms", 0, 1e15).value_or(0),
                           .what = moment.string("what").value_or(""),
                           .detail = moment.string("detail").value_or("")});
  }
  if (fault) return fault.unexpected();
  return out;
}

std::string requests_json(const std::vector<const RequestRecord*>& requests) {
  json::Array list;
  for (const RequestRecord* request : requests) list.push_back(object_of(*request));
  return json::to_text(json::Object{{"requests", std::move(list)}});
}

}  // namespace flotilla::api
