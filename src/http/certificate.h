#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <openssl/types.h>
#include <optional>
#include <string>

#include "base/result.h"

namespace flotilla::http {

// What a server shows to its clients, ready for use: TLS 1.2 and up, forward secrecy, HTTP/1.1 by
// ALPN. Shared and never changed: connections keep the one that they began with.
class Certificate {
 public:
  // `subject`: for people, the common name and the last day.
  Certificate(std::shared_ptr<SSL_CTX> context, std::string subject)
      : context_(std::move(context)), subject_(std::move(subject)) {}

  const std::shared_ptr<SSL_CTX>& context() const { return context_; }
  const std::string& subject() const { return subject_; }

 private:
  std::shared_ptr<SSL_CTX> context_;
  std::string subject_;
};

// A certificate (with its chain) and its private key, in two PEM files that somebody renews.
// Blocks: for one thread at a time that may.
class CertificateFiles {
 public:
  CertificateFiles(std::string certificate, std::string key);

  // InvalidArgument naming the file and the remedy: a file that cannot be read, is not PEM, is
  // encrypted, or a key that is not that certificate's.
  Result<Certificate> read();
  // Nothing where both files are as the last read saw them (device, inode, size, time).
  std::optional<Result<Certificate>> read_if_changed();

 private:
  struct State {
    std::array<std::int64_t, 8> numbers{};
    bool operator==(const State&) const = default;
  };
  State look() const;

  std::string certificate_;
  std::string key_;
  State seen_;
};

}  // namespace flotilla::http
