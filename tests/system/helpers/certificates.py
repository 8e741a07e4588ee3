# SPDX-License-Identifier: MIT
"""Certificates for TLS that sign themselves."""

import shutil
import subprocess

import pytest


def make_certificate(directory, name):
    """NAME.pem and NAME.key of localhost."""
    if not shutil.which("openssl"):
        pytest.skip("needs openssl to make a certificate")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost,DNS:*.localhost,IP:127.0.0.1",
                    "-keyout", directory / f"{name}.key", "-out", directory / f"{name}.pem"],
                   check=True, capture_output=True)
