#pragma once

#include <span>
#include <string_view>

// The built dashboard as bytes of this program: cmake/dashboard.cmake builds dashboard/ and
// tools/embed_dashboard.py writes the definition of dashboard_assets().
namespace flotilla::gateway {

// All views point into the program's read-only data and live as long as it.
struct Asset {
  std::string_view path;          // as requested: "/" is the page, the rest "/assets/…", "/….svg"
  std::string_view content_type;  // with its charset
  std::string_view gzip_bytes;    // send with Content-Encoding: gzip (every browser takes it)
  std::string_view etag;          // quoted, strong: a hash of the uncompressed bytes
};

// Sorted by path. Names below kDashboardHashedPrefix carry a hash of their content.
std::span<const Asset> dashboard_assets();

inline constexpr std::string_view kDashboardHashedPrefix = "/assets/";
// Cache-Control: hashed names never change; the page itself is asked for again, with its ETag.
inline constexpr std::string_view kDashboardHashedCache = "public, max-age=31536000, immutable";
inline constexpr std::string_view kDashboardPageCache = "no-cache";
// Content-Security-Policy of every asset: the page runs only what this program serves.
inline constexpr std::string_view kDashboardPolicy =
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'";

}  // namespace flotilla::gateway
