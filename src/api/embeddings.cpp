#include "api/embeddings.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "api/json.h"
#include "api/json_text.h"
#include "api/openai_body.h"

namespace flotilla::api {
namespace {

constexpr std::size_t kInputsMax = 2048;  // OpenAI's
constexpr std::size_t kNameMax = 512;
constexpr double kTimeoutMaxS = 7 * 24 * 3600;

void append_base64(std::string& out, std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t left = bytes.size() - at;
    const auto byte = [&](std::size_t i) -> std::uint32_t {
      return i < left ? static_cast<unsigned char>(bytes[at + i]) : 0U;
    };
    const std::uint32_t group = byte(0) << 16U | byte(1) << 8U | byte(2);
    out += kDigits[group >> 18U];
    out += kDigits[group >> 12U & 63U];
    out += left > 1 ? kDigits[group >> 6U & 63U] : '=';
    out += left > 2 ? kDigits[group & 63U] : '=';
  }
}

void append_vector(std::string& out, const std::vector<float>& vector, bool base64) {
  static_assert(std::endian::native == std::endian::little, "clients read little-endian floats");
  if (base64) {
    out += '"';
    append_base64(out,
                  {reinterpret_cast<const char*>(vector.data()), vector.size() * sizeof(float)});
    out += '"';
    return;
  }
  out += '[';
  for (const float number : vector) {
    if (out.back() != '[') out += ',';
    fmt::format_to(std::back_inserter(out), "{}", number);
  }
  out += ']';
}

}  // namespace

Result<EmbeddingsRequest> parse_embeddings_request(std::string_view body) {
  const auto object = json::parse_object(body);
  if (!object) return fail(object.error());
  return read_embeddings_request(*object);
}

Result<EmbeddingsRequest> read_embeddings_request(const json::Object& body) {
  json::Fault fault;
  json::Reader in(body, fault);
  EmbeddingsRequest out;
  in.require("model", "the alias of a loaded model");
  out.model = in.string("model", kNameMax).value_or("");
  out.inputs = read_prompts(in, "input", kInputsMax);
  out.base64 = in.choice("encoding_format", {"float", "base64"}).value_or("float") == "base64";
  if (const auto dimensions = in.integer("dimensions", 1, 1 << 20))
    out.dimensions = static_cast<int>(*dimensions);
  out.timeout_s = in.number("timeout_s", 0.001, kTimeoutMaxS);
  out.user = in.string("user", kNameMax).value_or("");
  if (fault) return fault.unexpected();
  return out;
}

std::vector<float> unit_vector(std::vector<float> vector, std::size_t dimensions) {
  vector.resize(std::min(vector.size(), dimensions));
  double squares = 0;
  for (const float number : vector) squares += static_cast<double>(number) * number;
  if (squares <= 0 || !std::isfinite(squares)) return vector;
  const double scale = 1 / std::sqrt(squares);
  for (float& number : vector) number = static_cast<float>(number * scale);
  return vector;
}

std::string to_json(const EmbeddingsAnswer& answer) {
  std::string out = R"({"object":"list","data":[)";
  for (std::size_t i = 0; i < answer.vectors.size(); ++i) {
    if (i > 0) out += ',';
    fmt::format_to(std::back_inserter(out), R"({{"object":"embedding","index":{},"embedding":)", i);
    append_vector(out, answer.vectors[i], answer.base64);
    out += '}';
  }
  out += R"(],"model":)";
  append_quoted(out, answer.model);
  fmt::format_to(std::back_inserter(out),
                 R"(,"usage":{{"prompt_tokens":{0},"total_tokens":{0}}},"x_flotilla":)",
                 answer.prompt_tokens);
  append_served_by(out, answer.served);
  return out + '}';
}

ForeignEmbeddings read_foreign_embeddings(std::string_view body, std::string_view alias) {
  constexpr std::size_t kBytesMax = 256 << 20;
  auto object = json::parse_object(
      body,
      {.bytes_max = kBytesMax, .values_max = kEmbeddingNumbersMax + json::Limits{}.values_max});
  if (!object) return {.body = std::string(body)};
  ForeignEmbeddings out;
  json::Value* usage = object->if_contains("usage");
  if (usage != nullptr && usage->is_object()) {
    json::Fault fault;
    json::Reader counts(usage->get_object(), fault);
    out.prompt_tokens = counts.integer("prompt_tokens", 0, INT64_MAX).value_or(0);
    json::keep_only(usage->get_object(), {"prompt_tokens", "total_tokens"});
  }
  (*object)["model"] = alias;
  out.body = json::to_text(*object);
  return out;
}

}  // namespace flotilla::api
