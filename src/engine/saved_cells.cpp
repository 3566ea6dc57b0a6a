#include "engine/saved_cells.h"

#include <array>
#include <cstring>
#include <type_traits>

#include "base/check.h"
#include "engine/checksum.h"

namespace flotilla::engine {
namespace {

struct Header {
  std::array<char, 8> magic = {'F', 'L', 'O', 'T', 'C', 'E', 'L', 'L'};
  std::uint32_t version = 1;
  std::uint32_t length = 0;
  std::uint64_t fingerprint = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t payload_checksum = 0;
  std::uint64_t header_checksum = 0;  // of all before it
};
static_assert(sizeof(Header) == 48 && std::is_trivially_copyable_v<Header>);

std::uint64_t header_checksum(const Header& header) {
  return checksum(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, header_checksum)));
}

std::unexpected<Error> bad(const char* what) { return fail(Code::InvalidArgument, what); }

}  // namespace

std::size_t saved_header_bytes() { return sizeof(Header); }

void seal_saved_cells(std::uint64_t fingerprint, int length, std::span<std::byte> state) {
  CHECK(state.size() >= sizeof(Header) && length >= 0);
  const auto payload = state.subspan(sizeof(Header));
  Header header;
  header.length = static_cast<std::uint32_t>(length);
  header.fingerprint = fingerprint;
  header.payload_bytes = payload.size();
  header.payload_checksum = checksum(payload);
  header.header_checksum = header_checksum(header);
  std::memcpy(state.data(), &header, sizeof(Header));
}

Result<SavedCells> open_saved_cells(std::uint64_t fingerprint, std::span<const std::byte> state) {
  if (state.size() < sizeof(Header)) return bad("the saved cells are cut off");
  Header header;
  std::memcpy(&header, state.data(), sizeof(Header));
  if (header.magic != Header{}.magic || header.version != Header{}.version) {
    return bad("these are no saved cells of this version");
  }
  if (header.header_checksum != header_checksum(header)) return bad("the saved cells are damaged");
  if (header.fingerprint != fingerprint) {
    return bad("the saved cells are of another model or another cell layout");
  }
  const auto payload = state.subspan(sizeof(Header));
  if (header.payload_bytes != payload.size()) return bad("the saved cells are cut off");
  if (header.payload_checksum != checksum(payload)) return bad("the saved cells are damaged");
  return SavedCells{header.fingerprint, static_cast<int>(header.length), payload};
}

}  // namespace flotilla::engine
