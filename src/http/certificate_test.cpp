#include "http/certificate.h"

#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/test_certificate.h"

namespace flotilla::http {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct CertificateTest : testing::Test {
  void SetUp() override {
    folder = testing::TempDir() + "/flotilla-certificate-" + std::to_string(::getpid());
    std::filesystem::create_directories(folder);
    certificate = folder + "/tls.crt";
    key = folder + "/tls.key";
    first.write_certificate(certificate);
    first.write_key(key);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  // Why the pair cannot be used.
  std::string refusal() {
    const auto read = CertificateFiles(certificate, key).read();
    return read ? "it was taken" : read.error().message;
  }

  std::string folder, certificate, key;
  const TestCertificate first{"one.example"};
  const TestCertificate second{"two.example"};
};

TEST_F(CertificateTest, names_whose_it_is) {
  const auto read = CertificateFiles(certificate, key).read();
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(read->subject(), HasSubstr("\"one.example\", valid to 2"));
}

TEST_F(CertificateTest, is_read_again_when_either_file_changed_and_only_then) {
  CertificateFiles files(certificate, key);
  ASSERT_TRUE(files.read());
  EXPECT_FALSE(files.read_if_changed());
  second.write_certificate(certificate);
  const auto half = files.read_if_changed();
  ASSERT_TRUE(half);
  ASSERT_FALSE(*half);
  EXPECT_THAT(half->error().message, HasSubstr("is not the key of the certificate for \"two."));
  EXPECT_FALSE(files.read_if_changed()) << "told once";
  second.write_key(key);
  const auto whole = files.read_if_changed();
  ASSERT_TRUE(whole && *whole);
  EXPECT_THAT((*whole)->subject(), HasSubstr("two.example"));
}

TEST_F(CertificateTest, a_vanished_file_is_a_change) {
  CertificateFiles files(certificate, key);
  ASSERT_TRUE(files.read());
  std::filesystem::remove(key);
  const auto gone = files.read_if_changed();
  ASSERT_TRUE(gone);
  EXPECT_FALSE(*gone);
  first.write_key(key);
  const auto back = files.read_if_changed();
  ASSERT_TRUE(back);
  EXPECT_TRUE(*back);
}

TEST_F(CertificateTest, what_cannot_be_used_is_named_with_the_remedy) {
  std::filesystem::remove(key);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("the key file " + key + " cannot be read"),
                               HasSubstr("No such file"), HasSubstr("give a PEM file")));
  std::ofstream(key) << "not a key\n";
  EXPECT_THAT(refusal(), HasSubstr("holds no private key in PEM form"));
  first.write_key(key, "secret");
  EXPECT_THAT(refusal(), HasSubstr("is encrypted; write it without its passphrase"));
  second.write_key(key);
  EXPECT_THAT(refusal(), HasSubstr("is not the key of the certificate for \"one.example\""));
  const TestCertificate other_kind("ed.example", EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  other_kind.write_key(key);
  EXPECT_THAT(refusal(), HasSubstr("is not the key of the certificate for \"one.example\""));
  std::ofstream(certificate) << "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  EXPECT_THAT(refusal(), AllOf(HasSubstr("the certificate file " + certificate),
                               HasSubstr("holds no usable certificate")));
  std::filesystem::remove(certificate);
  EXPECT_THAT(refusal(), HasSubstr("the certificate file " + certificate + " cannot be read"));
}

}  // namespace
}  // namespace flotilla::http
