#include "http/body_decoder.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace flotilla::http {
namespace {

using State = BodyDecoder::State;

struct Outcome {
  std::string body;
  State state;
  std::size_t taken;
  bool operator==(const Outcome&) const = default;
};

// Feeds `parts`, each until it is used up, at most `out_max` bytes at a time.
Outcome decode(BodyDecoder decoder, const std::vector<std::string_view>& parts,
               std::size_t out_max) {
  Outcome outcome{.body = {}, .state = State::More, .taken = 0};
  for (std::string_view part : parts) {
    while (!part.empty() && decoder.state() == State::More) {
      std::string out;
      const std::size_t taken = decoder.feed(part, out, out_max);
      EXPECT_LE(out.size(), out_max);
      if (taken == 0) break;
      outcome.body += out;
      outcome.taken += taken;
      part.remove_prefix(taken);
    }
  }
  outcome.state = decoder.state();
  return outcome;
}

const std::string kChunked =
    "5\r\nhello\r\n1;a=b\r\n \r\n00A;x=\"y\"\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nNEXT";

TEST(BodyDecoder, decodes_chunks_at_every_border) {
  const std::string_view text = kChunked;
  const Outcome expected{
      .body = "hello 0123456789", .state = State::Done, .taken = text.size() - 4};
  for (std::size_t a = 0; a <= text.size(); ++a) {
    for (std::size_t b = a; b <= text.size(); ++b) {
      for (const std::size_t out_max : {std::size_t{1}, std::size_t{3}, std::size_t{100}}) {
        const std::vector<std::string_view> parts{text.substr(0, a), text.substr(a, b - a),
                                                  text.substr(b)};
        ASSERT_EQ(decode(BodyDecoder::chunked(), parts, out_max), expected) << a << " " << b;
      }
    }
  }
}

TEST(BodyDecoder, refuses_what_two_readers_could_understand_differently) {
  for (const char* text :
       {"\r\n", ";a\r\n", "g\r\n", "-1\r\n", "+1\r\n", "0x1\r\n", " 1\r\n", "1 \r\n", "1\nx\r\n",
        "1\r\nxy\r\n", "1\r\nx\n", "1\r\nx\rX", "1;a\nx", "0\r\nA: b\n\r\n", "0\r\n\n", "0\r\n\rX",
        "1\r x", "0000000000000001\r\n", "fffffffffffffffff\r\n"}) {
    EXPECT_EQ(decode(BodyDecoder::chunked(), {text}, 100).state, State::Malformed) << text;
  }
}

TEST(BodyDecoder, bounds_extensions_and_trailers) {
  const std::string much(20 << 10, 'x');
  EXPECT_EQ(decode(BodyDecoder::chunked(), {"1;" + much}, 9).state, State::Malformed);
  EXPECT_EQ(decode(BodyDecoder::chunked(), {"0\r\n" + much}, 9).state, State::Malformed);
}

TEST(BodyDecoder, counts_a_length_and_leaves_the_rest) {
  EXPECT_EQ(decode(BodyDecoder::length(3), {"ab", "cNEXT"}, 2),
            (Outcome{.body = "abc", .state = State::Done, .taken = 3}));
  EXPECT_EQ(BodyDecoder::length(0).state(), State::Done);
  EXPECT_EQ(decode(BodyDecoder::length(3), {"ab"}, 9).state, State::More);
}

TEST(BodyDecoder, reads_to_the_end_of_the_connection) {
  EXPECT_EQ(decode(BodyDecoder::until_close(), {"ab", "cd"}, 3),
            (Outcome{.body = "abcd", .state = State::More, .taken = 4}));
}

TEST(BodyDecoder, random_bodies_survive_random_chunks_and_reads) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    std::string body, wire;
    for (std::uint64_t chunks = random.below(6); chunks > 0; --chunks) {
      std::string chunk(1 + random.below(40), static_cast<char>('a' + random.below(26)));
      std::array<char, 24> size;
      std::snprintf(size.data(), size.size(), random.chance(0.5) ? "%zx\r\n" : "%03zX\r\n",
                    chunk.size());
      wire += size.data() + chunk + "\r\n";
      body += chunk;
    }
    wire += "0\r\n\r\n";
    std::vector<std::string_view> parts;
    for (std::string_view rest = wire; !rest.empty(); rest.remove_prefix(parts.back().size())) {
      parts.push_back(rest.substr(0, 1 + random.below(12)));
    }
    ASSERT_EQ(decode(BodyDecoder::chunked(), parts, 1 + random.below(20)),
              (Outcome{.body = body, .state = State::Done, .taken = wire.size()}))
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace flotilla::http
