#pragma once

#include <cstdio>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string>

// For the tests of this folder.
namespace flotilla::http {

// A self-signed certificate for the DNS name, and its key.
struct TestCertificate {
  explicit TestCertificate(const char* name, EVP_PKEY* with_key = nullptr)
      : key(with_key ? with_key : EVP_EC_gen("P-256")), certificate(X509_new()) {
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME* subject = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
    X509_set_issuer_name(certificate, subject);
    const std::string alternative = std::string("DNS:") + name;
    X509_EXTENSION* extension =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, alternative.c_str());
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
    X509_sign(certificate, key, EVP_PKEY_is_a(key, "ED25519") ? nullptr : EVP_sha256());
  }
  ~TestCertificate() {
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
  TestCertificate(const TestCertificate&) = delete;
  TestCertificate& operator=(const TestCertificate&) = delete;

  void write_certificate(const std::string& path) const {
    write(path, [this](BIO* bio) { PEM_write_bio_X509(bio, certificate); });
  }
  void write_key(const std::string& path, const char* passphrase = nullptr) const {
    write(path, [this, passphrase](BIO* bio) {
      PEM_write_bio_PKCS8PrivateKey(bio, key, passphrase ? EVP_aes_128_cbc() : nullptr, nullptr, 0,
                                    nullptr, const_cast<char*>(passphrase));
    });
  }

  EVP_PKEY* key;
  X509* certificate;

 private:
  // In one piece, as a renewal does it: another file takes the name.
  template <class Write>
  static void write(const std::string& path, Write write) {
    BIO* bio = BIO_new_file((path + ".new").c_str(), "w");
    write(bio);
    BIO_free(bio);
    std::rename((path + ".new").c_str(), path.c_str());
  }
};

}  // namespace flotilla::http
