"""A certificate authority of the tests' own, made by openssl."""

import ssl
import subprocess

NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, stdin=subprocess.DEVNULL)


class Authority:
    def __init__(self, folder):
        self.folder = folder
        self.certificate = folder / "authority.pem"
        self.key = folder / "authority.key"
        openssl("req", "-x509", *NEW_KEY, "-days", 2, "-subj", "/CN=Authority of the tests", "-out", self.certificate,
                "-keyout", self.key)

    def issue(self, name, certificate=None, key=None):
        """A certificate for this machine, CN `name`, and its key, in place of the files where some are named."""
        new, new_key = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        openssl("req", "-x509", *NEW_KEY, "-CA", self.certificate, "-CAkey", self.key, "-days", 2, "-subj",
                f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-addext",
                "basicConstraints=critical,CA:FALSE", "-out", new, "-keyout", new_key)
        if certificate:
            new.rename(certificate)
            new_key.rename(key)
        return certificate or new, key or new_key

    def context(self):
        """What a client needs to trust it."""
        return ssl.create_default_context(cafile=self.certificate)
