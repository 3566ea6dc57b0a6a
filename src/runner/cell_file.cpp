#include "runner/cell_file.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <type_traits>

#include <fmt/format.h>

#include "base/secret.h"
#include "base/sha256.h"
#include "platform/files.h"

namespace flotilla::runner {
namespace {

constexpr std::uint64_t kFileMax = 64ULL << 30;
constexpr std::uint32_t kGroupMax = 4096;
constexpr std::uint32_t kTokensMax = 1 << 26;
constexpr std::size_t kMac = 32;

// In front of group, tokens, the head's MAC, the cells' MAC and the cells.
struct Front {
  std::array<char, 8> magic = {'F', 'L', 'O', 'T', 'F', 'I', 'L', 'E'};
  std::uint32_t version = 1;
  std::uint32_t group_bytes = 0;
  std::uint32_t tokens = 0;
  std::uint32_t unused = 0;
  std::uint64_t cells_bytes = 0;
};
static_assert(sizeof(Front) == 32 && std::is_trivially_copyable_v<Front>);

std::uint64_t head_bytes(const Front& front) {
  return sizeof(Front) + front.group_bytes + std::uint64_t{front.tokens} * sizeof(engine::Token);
}

bool plausible(const Front& front, std::uint64_t file_bytes) {
  const Front ours;
  return front.magic == ours.magic && front.version == ours.version &&
         front.group_bytes <= kGroupMax && front.tokens <= kTokensMax &&
         front.cells_bytes <= kFileMax &&
         head_bytes(front) + 2 * kMac + front.cells_bytes == file_bytes;
}

std::unexpected<Error> bad(const std::filesystem::path& file, std::string_view what) {
  return fail(Code::InvalidArgument, fmt::format("{} {}", file.string(), what));
}

template <class T>
std::string_view bytes_of(std::span<const T> items) {
  return {reinterpret_cast<const char*>(items.data()), items.size_bytes()};
}

// `text`: front, group and tokens, whose sizes have been checked.
CellFileHead parse_head(const Front& front, std::string_view text) {
  CellFileHead head;
  head.group = text.substr(sizeof(Front), front.group_bytes);
  head.tokens.resize(front.tokens);
  const std::string_view tokens = text.substr(sizeof(Front) + front.group_bytes);
  // Without any there is no memory to copy to.
  if (front.tokens > 0)
    std::memcpy(head.tokens.data(), tokens.data(), front.tokens * sizeof(engine::Token));
  return head;
}

}  // namespace

Result<std::uint64_t> write_cell_file(const std::filesystem::path& file, std::string_view key,
                                      const CellFileHead& head, std::span<const std::byte> cells) {
  if (head.group.size() > kGroupMax || head.tokens.size() > kTokensMax) {
    return fail(Code::InvalidArgument, "a conversation is too long for a file");
  }
  Front front;
  front.group_bytes = static_cast<std::uint32_t>(head.group.size());
  front.tokens = static_cast<std::uint32_t>(head.tokens.size());
  front.cells_bytes = cells.size();
  const std::string_view first = bytes_of(std::span<const Front>(&front, 1));
  const std::string_view tokens = bytes_of(std::span<const engine::Token>(head.tokens));
  const std::string_view signed_head[] = {first, head.group, tokens};
  const std::string head_mac = hmac_sha256(key, signed_head);
  const std::string_view signed_whole[] = {head_mac, bytes_of(cells)};
  const std::string whole_mac = hmac_sha256(key, signed_whole);
  const std::string_view parts[] = {first,    head.group, tokens,
                                    head_mac, whole_mac,  bytes_of(cells)};
  if (auto written = platform::write_whole(file, parts); !written) return fail(written.error());
  return head_bytes(front) + 2 * kMac + front.cells_bytes;
}

Result<CellFileHead> read_cell_file_head(const std::filesystem::path& file, std::string_view key) {
  std::error_code failed;
  const std::uint64_t size = std::filesystem::file_size(file, failed);
  std::ifstream in(file, std::ios::binary);
  Front front;
  if (failed || !in.read(reinterpret_cast<char*>(&front), sizeof(front))) {
    return bad(file, "cannot be read");
  }
  if (!plausible(front, size)) return bad(file, "is cut off, or no file of ours");
  std::string text(head_bytes(front) + kMac, '\0');
  in.seekg(0);
  if (!in.read(text.data(), static_cast<std::streamsize>(text.size()))) {
    return bad(file, "cannot be read");
  }
  const std::string_view head = std::string_view(text).substr(0, head_bytes(front));
  const std::string_view mac = std::string_view(text).substr(head.size());
  if (!same_secret(hmac_sha256(key, std::span(&head, 1)), mac)) {
    return bad(file, "was changed, or is another's");
  }
  return parse_head(front, head);
}

Result<CellFile> read_cell_file(const std::filesystem::path& file, std::string_view key) {
  const Result<std::string> text = platform::read_whole(file, kFileMax);
  if (!text) return fail(text.error());
  Front front;
  if (text->size() < sizeof(Front)) return bad(file, "is cut off");
  std::memcpy(&front, text->data(), sizeof(Front));
  if (!plausible(front, text->size())) return bad(file, "is cut off, or no file of ours");
  const std::string_view all = *text;
  const std::string_view head = all.substr(0, head_bytes(front));
  const std::string_view cells = all.substr(head.size() + 2 * kMac);
  const std::string head_mac = hmac_sha256(key, std::span(&head, 1));
  const std::string_view signed_whole[] = {head_mac, cells};
  if (!same_secret(head_mac, all.substr(head.size(), kMac)) ||
      !same_secret(hmac_sha256(key, signed_whole), all.substr(head.size() + kMac, kMac))) {
    return bad(file, "was changed, or is another's");
  }
  CellFile out{.head = parse_head(front, head), .cells = std::vector<std::byte>(cells.size())};
  if (!cells.empty()) std::memcpy(out.cells.data(), cells.data(), cells.size());
  return out;
}

}  // namespace flotilla::runner
