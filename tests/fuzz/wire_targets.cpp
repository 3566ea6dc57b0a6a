#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "api/agent_frames.h"
#include "api/runner_protocol.h"
#include "base/check.h"
#include "fuzz/target.h"
#include "http/body_decoder.h"
#include "http/client.h"
#include "http/forwarded.h"
#include "http/head.h"

// HTTP as bytes, and what agents, runners and gateways say to each other.
namespace flotilla::fuzz {
namespace {

using http::HeadScanner;

HeadScanner::State scan(std::string_view bytes, Cuts* cuts, std::size_t& size) {
  HeadScanner scanner;
  auto state = HeadScanner::State::More;
  for (std::string_view rest = bytes; !rest.empty() && state == HeadScanner::State::More;) {
    if (cuts != nullptr) {
      cuts->take(rest);
    } else {
      rest = {};
    }
    state = scanner.scan(bytes.substr(0, bytes.size() - rest.size()));
  }
  size = state == HeadScanner::State::Whole ? scanner.size() : 0;
  return state;
}

void http_head(std::string_view bytes) {
  Cuts cuts(take_byte(bytes));
  std::size_t size = 0, cut_size = 0;
  const auto state = scan(bytes, nullptr, size);
  CHECK(scan(bytes, &cuts, cut_size) == state && cut_size == size);
  if (state != HeadScanner::State::Whole) return;
  const std::string_view head = bytes.substr(0, size);
  if (const auto request = http::parse_request_head(head); request) {
    CHECK(!request->chunked || request->content_length == 0);
    (void)request->request.path();
    (void)request->request.query("a");
    (void)request->request.cookies("a");
  } else {
    CHECK(request.error().status >= 400 && !request.error().message.empty());
  }
  if (const auto answer = http::parse_response_head(head); answer) {
    CHECK(!answer->chunked || !answer->content_length);
  }
}

struct Decoded {
  std::string body;
  http::BodyDecoder::State state{};
  std::size_t taken = 0;
  bool operator==(const Decoded&) const = default;
};

Decoded decode(http::BodyDecoder decoder, std::string_view bytes, Cuts* cuts) {
  Decoded out;
  while (!bytes.empty() && decoder.state() == http::BodyDecoder::State::More) {
    const std::string_view piece =
        cuts != nullptr ? cuts->take(bytes) : std::exchange(bytes, std::string_view());
    const std::size_t taken = decoder.feed(piece, out.body, 1 << 20);
    CHECK(taken <= piece.size());
    out.taken += taken;
    CHECK(taken == piece.size() || decoder.state() != http::BodyDecoder::State::More);
  }
  out.state = decoder.state();
  return out;
}

void http_body(std::string_view bytes) {
  const std::uint8_t seed = take_byte(bytes);
  Cuts cuts(seed);
  if (bytes.size() > 1 << 19) return;
  const auto decoder =
      seed % 4 == 0 ? http::BodyDecoder::length(seed) : http::BodyDecoder::chunked();
  const Decoded whole = decode(decoder, bytes, nullptr);
  CHECK(decode(decoder, bytes, &cuts) == whole);
  CHECK(whole.body.size() <= bytes.size());
}

// Lines: the peer, the trusted ranges, then fields.
void forwarded(std::string_view bytes) {
  http::Remote peer{.address = std::string(take_line(bytes))};
  std::vector<http::AddressRange> trusted;
  for (std::string_view ranges = take_line(bytes); !ranges.empty();) {
    const std::string_view range = ranges.substr(0, ranges.find(' '));
    ranges.remove_prefix(std::min(ranges.size(), range.size() + 1));
    if (auto parsed = http::AddressRange::parse(range); parsed) {
      trusted.push_back(*std::move(parsed));
    } else {
      CHECK(!parsed.error().message.empty());
    }
  }
  http::Headers headers;
  while (!bytes.empty()) {
    const std::string_view line = take_line(bytes);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    headers.add(std::string(line.substr(0, colon)), std::string(line.substr(colon + 1)));
  }
  bool peer_is_trusted = false;
  for (const auto& range : trusted) peer_is_trusted |= range.contains(peer.address);
  const http::Remote remote = http::find_remote(peer, headers, trusted);
  if (!peer_is_trusted) CHECK(remote.address == peer.address && !remote.forwarded);
}

void url(std::string_view bytes) {
  const auto endpoint = http::parse_url(bytes);
  if (!endpoint) return CHECK(!endpoint.error().message.empty());
  CHECK(!endpoint->host.empty() && endpoint->port != 0);
  CHECK(endpoint->base_path.empty() || endpoint->base_path.front() == '/');
}

std::vector<std::string> frames_of(std::string_view bytes, Cuts* cuts, bool& broken) {
  std::vector<std::string> frames;
  api::FrameReader reader;
  broken = false;
  while (!bytes.empty() && !broken) {
    reader.feed(cuts != nullptr ? cuts->take(bytes) : std::exchange(bytes, std::string_view()));
    while (true) {
      auto next = reader.next();
      broken = !next;
      if (!next || !*next) break;
      frames.push_back(**std::move(next));
    }
  }
  return frames;
}

void check_frame(const std::string& frame) {
  api::FrameReader reader;
  reader.feed(frame);
  const auto read = reader.next();
  CHECK(read && *read);
}

void agent_frames(std::string_view bytes) {
  Cuts cuts(take_byte(bytes));
  bool broken = false, cut_broken = false;
  const auto frames = frames_of(bytes, nullptr, broken);
  CHECK(frames_of(bytes, &cuts, cut_broken) == frames && cut_broken == broken);
  for (const std::string& frame : frames) {
    if (const auto command = api::parse_command(frame); command) {
      if (const auto again = api::encode_frame(*command); again) check_frame(*again);
    }
    if (const auto event = api::parse_event(frame); event) check_frame(api::encode_frame(*event));
  }
}

// The JSON of a frame without its length, which a fuzzer would seldom get right.
void agent_messages(std::string_view bytes) {
  if (const auto command = api::parse_command(bytes); command) {
    if (const auto again = api::encode_frame(*command); again) {
      check_frame(*again);
      CHECK(api::parse_command(std::string_view(*again).substr(4)));
    }
  }
  if (const auto event = api::parse_event(bytes); event) {
    const std::string again = api::encode_frame(*event);
    check_frame(again);
    CHECK(api::parse_event(std::string_view(again).substr(4)));
  }
}

void runner_lines(std::string_view bytes) {
  if (const auto line = api::parse_runner_line(bytes); line) {
    CHECK(api::parse_runner_line(api::runner_line(*line)));
  }
  if (const auto event = api::parse_runner_event(bytes); event) {
    CHECK(api::parse_runner_event(api::to_json(*event)));
  }
}

}  // namespace

std::vector<Target> wire_targets() {
  return {{"http_head", http_head},       {"http_body", http_body},
          {"forwarded", forwarded},       {"url", url},
          {"agent_frames", agent_frames}, {"agent_messages", agent_messages},
          {"runner_lines", runner_lines}};
}

}  // namespace flotilla::fuzz
