#include "http/certificate.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace flotilla::http {
namespace {

// Of TLS 1.2 only what is also in 1.3's spirit: fresh keys for each connection, authenticated.
constexpr const char* kTls12Ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20";

// A client that asks for a protocol by ALPN gets HTTP/1.1 or is told that we have no other.
int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size,
                    const unsigned char* in, unsigned in_size, void*) {
  static constexpr unsigned char kHttp11[] = "\x08http/1.1";
  unsigned char* chosen = nullptr;
  const int found =
      SSL_select_next_proto(&chosen, out_size, kHttp11, sizeof kHttp11 - 1, in, in_size);
  *out = chosen;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

std::shared_ptr<SSL_CTX> make_context() {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (!context) return nullptr;
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(context.get(), kTls12Ciphers);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);
  // A write that waited is tried again from another place in memory; a quiet connection keeps none.
  SSL_CTX_set_mode(context.get(), SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);  // tickets need no memory
  SSL_CTX_set_alpn_select_cb(context.get(), choose_protocol, nullptr);
  return context;
}

std::unexpected<Error> bad_file(const char* what, const std::string& file, std::string_view why) {
  ERR_clear_error();
  return fail(Code::InvalidArgument, fmt::format("the {} file {} {}", what, file, why));
}

// A passphrase is nothing that a server could ask for.
int no_passphrase(char*, int, int, void*) { return -1; }

Result<void> check_readable(const char* what, const std::string& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    return bad_file(what, file,
                    fmt::format("cannot be read: {}; give a PEM file that this user may read",
                                std::strerror(errno)));
  }
  ::close(descriptor);
  return {};
}

bool is_encrypted(unsigned long error) {
  return ERR_GET_LIB(error) == ERR_LIB_PEM && (ERR_GET_REASON(error) == PEM_R_BAD_PASSWORD_READ ||
                                               ERR_GET_REASON(error) == PEM_R_BAD_DECRYPT);
}

std::string describe(const X509& certificate) {
  std::array<char, 256> name{};
  X509_NAME_get_text_by_NID(X509_get_subject_name(&certificate), NID_commonName, name.data(),
                            static_cast<int>(name.size()));
  std::tm end{};
  ASN1_TIME_to_tm(X509_get0_notAfter(&certificate), &end);
  const bool over = X509_cmp_current_time(X509_get0_notAfter(&certificate)) < 0;
  return fmt::format("\"{}\", {} {:04}-{:02}-{:02}", name.data(),
                     over ? "which EXPIRED on" : "valid to", end.tm_year + 1900, end.tm_mon + 1,
                     end.tm_mday);
}

Result<void> use_key(SSL_CTX& context, const std::string& file) {
  if (auto may = check_readable("key", file); !may) return may;
  const std::unique_ptr<BIO, decltype(&BIO_free)> in(BIO_new_file(file.c_str(), "r"), BIO_free);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      in ? PEM_read_bio_PrivateKey(in.get(), nullptr, no_passphrase, nullptr) : nullptr,
      EVP_PKEY_free);
  if (!key) {
    bool encrypted = false;
    while (const unsigned long error = ERR_get_error()) encrypted |= is_encrypted(error);
    return bad_file("key", file,
                    encrypted ? "is encrypted; write it without its passphrase: openssl pkey -in "
                                "FILE -out NEW"
                              : "holds no private key in PEM form");
  }
  // Against the certificate itself: a key of another kind would only stand beside it.
  X509* certificate = SSL_CTX_get0_certificate(&context);
  if (X509_check_private_key(certificate, key.get()) == 1 &&
      SSL_CTX_use_PrivateKey(&context, key.get()) == 1) {
    return {};
  }
  return bad_file("key", file,
                  fmt::format("is not the key of the certificate for {}; give the one that it was "
                              "issued with",
                              describe(*certificate)));
}

}  // namespace

CertificateFiles::CertificateFiles(std::string certificate, std::string key)
    : certificate_(std::move(certificate)), key_(std::move(key)) {}

CertificateFiles::State CertificateFiles::look() const {
  State state;
  auto number = state.numbers.begin();
  for (const std::string& file : {certificate_, key_}) {
    struct stat info{};
    if (::stat(file.c_str(), &info) != 0) info = {};
    std::error_code failed;
    const auto written = std::filesystem::last_write_time(file, failed);
    *number++ = static_cast<std::int64_t>(info.st_dev);
    *number++ = static_cast<std::int64_t>(info.st_ino);
    *number++ = static_cast<std::int64_t>(info.st_size);
    *number++ = failed ? 0 : static_cast<std::int64_t>(written.time_since_epoch().count());
  }
  return state;
}

Result<Certificate> CertificateFiles::read() {
  seen_ = look();  // before the bytes: what is written meanwhile is read the next time
  if (auto may = check_readable("certificate", certificate_); !may) return fail(may.error());
  const auto context = make_context();
  if (!context) return fail(Code::Internal, "OpenSSL cannot make a TLS context");
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate_.c_str()) != 1) {
    const char* reason = ERR_reason_error_string(ERR_peek_last_error());
    return bad_file("certificate", certificate_,
                    fmt::format("holds no usable certificate in PEM form ({}); give the server's "
                                "certificate, followed by those between it and the authority",
                                reason ? reason : "no reason given"));
  }
  if (auto used = use_key(*context, key_); !used) return fail(used.error());
  return Certificate(context, describe(*SSL_CTX_get0_certificate(context.get())));
}

std::optional<Result<Certificate>> CertificateFiles::read_if_changed() {
  if (look() == seen_) return std::nullopt;
  return read();
}

}  // namespace flotilla::http
