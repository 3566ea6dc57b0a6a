#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "platform/fd.h"

namespace flotilla::platform {

// Creates it with mode 0600. None if that fails.
Fd open_to_append(const std::filesystem::path& file);
std::int64_t file_bytes(const Fd& fd);
// What cannot be written is dropped.
void write_some(const Fd& fd, std::string_view bytes);

// Writes a file of mode 0600 whole or not at all: beside its place first, then into it.
Result<void> write_whole(const std::filesystem::path& file,
                         std::span<const std::string_view> parts);
// All of it. NotFound: there is none; ResourceExhausted: it has more than `bytes_max`.
Result<std::string> read_whole(const std::filesystem::path& file, std::uint64_t bytes_max);

// A file that grows from both ends' point of view: opened for this process alone (Conflict: another
// has it), made if it is missing, never through a link.
Result<Fd> open_part(const std::filesystem::path& file);
Result<Fd> open_to_read(const std::filesystem::path& file);
// What was read, at most `into`; empty at its end.
Result<std::span<char>> read_piece(const Fd& fd, std::span<char> into);
Result<void> write_piece(const Fd& fd, std::span<const char> bytes);
Result<void> cut_file(const Fd& fd, std::int64_t bytes);
// On the disk, then in its place.
Result<void> put_in_place(const Fd& fd, const std::filesystem::path& from,
                          const std::filesystem::path& to);

// Device, inode, size and change time as one word: the same as long as nobody has put another
// content there. Empty: there is no file.
std::string file_identity(const std::filesystem::path& file);

Fd duplicate(int fd);
// Takes stdin (0) or stdout (1) away from the process: closing what is returned closes it.
// /dev/null takes its place, so that no later file gets that number.
Fd take_stdio(int fd);
// From now on our stderr goes to the end of `file`.
void redirect_stderr(const std::filesystem::path& file);
// Broken pipes become errors of the write instead of our end; a closed terminal does not end us.
void ignore_broken_pipes();
void ignore_hangup();

}  // namespace flotilla::platform
