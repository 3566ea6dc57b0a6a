#include "http/head.h"

#include <gtest/gtest.h>

namespace flotilla::http {
namespace {

using State = HeadScanner::State;

TEST(HeadScanner, finds_the_end_at_every_border) {
  const std::string text = "GET / HTTP/1.1\r\nHost: a\r\nB: c\r\n\r\nrest";
  for (std::size_t a = 1; a < text.size() - 4; ++a) {
    HeadScanner scanner;
    const State first = scanner.scan(std::string_view(text).substr(0, a));
    ASSERT_EQ(first == State::More ? scanner.scan(text) : first, State::Whole) << a;
    ASSERT_EQ(scanner.size(), text.size() - 4) << a;
  }
  HeadScanner scanner;
  for (std::size_t size = 1; size < text.size() - 4; ++size) {
    ASSERT_EQ(scanner.scan(std::string_view(text).substr(0, size)), State::More);
  }
  EXPECT_EQ(scanner.scan(text), State::Whole);
}

TEST(HeadScanner, refuses_bare_lf_folds_and_garbage_at_once) {
  for (const char* text : {"GET / HTTP/1.1\n", "GET / HTTP/1.1\r\nA: b\n", "\n", "\x16\x03\x01",
                           "GET / HTTP/1.1\r\nA: b\r\n ", "GET / HTTP/1.1\r\nA: b\r\n\tc",
                           "GET / HTTP/1.1\r\n \r\n"}) {
    HeadScanner scanner;
    EXPECT_EQ(scanner.scan(text), State::Malformed) << text;
  }
}

std::string request(std::string_view fields, std::string_view line = "POST /x HTTP/1.1") {
  return std::string(line) + "\r\n" + std::string(fields) + "\r\n";
}

// As a connection does it: the scanner first.
bool refused(const std::string& text) {
  HeadScanner scanner;
  if (scanner.scan(text) == State::Malformed) return true;
  const auto head = parse_request_head(text);
  return !head && head.error().status == 400;
}

TEST(RequestHead, refuses_the_shapes_of_request_smuggling) {
  const std::string host = "Host: a\r\n";
  for (const char* fields : {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                             "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
                             "Content-Length: 5\r\nContent-Length: 6\r\n",
                             "Content-Length: 5\r\nContent-Length: 5\r\n",
                             "Content-Length: 5, 5\r\n",
                             "Content-Length: +5\r\n",
                             "Content-Length: -5\r\n",
                             "Content-Length: 5 5\r\n",
                             "Content-Length: 0x5\r\n",
                             "Content-Length: 5;\r\n",
                             "Content-Length:\r\n",
                             "Content-Length: 99999999999999999999\r\n",
                             "Content-Length : 5\r\n",
                             "Content-Length\t: 5\r\n",
                             " Content-Length: 5\r\n",
                             "Content-Length: 5\r\n 6\r\n",
                             "Transfer-Encoding : chunked\r\n",
                             "Transfer-Encoding: chunked, chunked\r\n",
                             "Transfer-Encoding: chunked, identity\r\n",
                             "Transfer-Encoding: gzip, chunked\r\n",
                             "Transfer-Encoding: xchunked\r\n",
                             "Transfer-Encoding: \vchunked\r\n",
                             "Transfer-Encoding: identity\r\n",
                             "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                             "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
                             "Transfer-Encoding:\r\n",
                             "A: b\x01\r\n",
                             "A\x01: b\r\n",
                             "A b: c\r\n",
                             ": c\r\n",
                             "NoColon\r\n",
                             "A: b\rc\r\n",
                             "Host: b\r\n"}) {
    EXPECT_TRUE(refused(request(host + fields))) << fields;
  }
}

TEST(RequestHead, refuses_bad_request_lines) {
  for (const char* line :
       {"POST /x HTTP/1.2", "POST /x HTTP/2.0", "POST /x HTTP/0.9", "POST /x", "POST  /x HTTP/1.1",
        "POST /x  HTTP/1.1", "POST x HTTP/1.1", "POST /x HTTP/1.1 ", "PO ST /x HTTP/1.1",
        "POST /\x01 HTTP/1.1", "POST /x http/1.1", "POST /x HTTP/11", "CONNECT a:1 HTTP/1.1"}) {
    EXPECT_FALSE(parse_request_head(request("Host: a\r\n", line))) << line;
  }
  EXPECT_FALSE(parse_request_head(request("")));  // no Host
  EXPECT_FALSE(parse_request_head(request("Transfer-Encoding: chunked\r\n", "POST / HTTP/1.0")));
  EXPECT_EQ(parse_request_head(request("Host: a\r\nExpect: x\r\n")).error().status, 417);
}

TEST(RequestHead, refuses_a_target_that_names_another_host_than_its_header) {
  for (const char* line :
       {"GET http://b/x HTTP/1.1", "GET http://a:1/x HTTP/1.1", "GET http://b@a/x HTTP/1.1",
        "GET http:///x HTTP/1.1", "GET https://b HTTP/1.1", "GET HTTP://b?x HTTP/1.1"}) {
    EXPECT_TRUE(refused(request("Host: a\r\n", line))) << line;
  }
  EXPECT_TRUE(refused(request("", "GET http://a/x HTTP/1.0")));
  EXPECT_EQ(parse_request_head(request("Host: a:1\r\n", "GET HTTP://A:1 HTTP/1.1"))->request.target,
            "/");
}

TEST(RequestHead, reads_what_is_right) {
  const auto head = parse_request_head(
      request("hOST: a:1\r\ncontent-length:  12 \r\nX: a  b\r\nExpect: 100-Continue\r\n"));
  ASSERT_TRUE(head) << head.error().message;
  EXPECT_EQ(head->request.method, "POST");
  EXPECT_EQ(head->request.target, "/x");
  EXPECT_EQ(head->content_length, 12U);
  EXPECT_TRUE(head->keep_alive);
  EXPECT_TRUE(head->expect_continue);
  EXPECT_FALSE(head->chunked);
  EXPECT_EQ(head->request.headers.find("x"), "a  b");

  EXPECT_TRUE(parse_request_head(request("Host: a\r\nTransfer-Encoding: Chunked\r\n"))->chunked);
  EXPECT_FALSE(parse_request_head(request("Host: a\r\nConnection: x, Close\r\n"))->keep_alive);
  EXPECT_FALSE(parse_request_head(request("", "GET / HTTP/1.0"))->keep_alive);
  EXPECT_TRUE(
      parse_request_head(request("Connection: Keep-Alive\r\n", "GET / HTTP/1.0"))->keep_alive);
  EXPECT_EQ(parse_request_head(request("Host: a\r\n", "GET http://a/b?c HTTP/1.1"))->request.target,
            "/b?c");
  EXPECT_EQ(parse_request_head(request("Host: a\r\n", "GET http://a?c HTTP/1.1"))->request.target,
            "/?c");
  EXPECT_EQ(parse_request_head(request("Host: a\r\n", "OPTIONS * HTTP/1.1"))->request.target, "*");
}

TEST(ResponseHead, decides_where_the_body_ends) {
  const auto parse = [](std::string_view fields) {
    return parse_response_head("HTTP/1.1 200 OK\r\n" + std::string(fields) + "\r\n");
  };
  EXPECT_EQ(parse("Content-Length: 7\r\n")->content_length, 7U);
  EXPECT_EQ(parse("Content-Length: 7\r\nContent-Length: 7\r\n")->content_length, 7U);
  EXPECT_FALSE(parse("Content-Length: 7\r\nContent-Length: 8\r\n"));
  EXPECT_TRUE(parse("Transfer-Encoding: chunked\r\n")->chunked);
  EXPECT_FALSE(parse("Transfer-Encoding: gzip\r\n"));
  EXPECT_FALSE(parse("")->content_length);
  EXPECT_FALSE(parse("Connection: close\r\n")->keep_alive);
  EXPECT_TRUE(parse("")->keep_alive);
  EXPECT_EQ(parse_response_head("HTTP/1.1 404 \r\n\r\n")->status, 404);
  EXPECT_FALSE(parse_response_head("HTTP/1.1 20 OK\r\n\r\n"));
}

TEST(AppendField, cannot_be_made_to_add_a_line) {
  std::string out;
  append_field(out, "A\r\nB", "c\r\nSet-Cookie: x\n\r\n");
  EXPECT_EQ(out, "A  B: c  Set-Cookie: x   \r\n");
}

}  // namespace
}  // namespace flotilla::http
