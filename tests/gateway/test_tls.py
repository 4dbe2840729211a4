"""Certificates that cannot be used are named with the reason, and those that will end in time."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from made_certificates import Certificates

from hushcast_gateway.clients.tls import days_left, server_context
from hushcast_gateway.sections.listen_section import ListenSection
from hushcast_protocol.base.errors import UsageError


def place(**files: str) -> ListenSection:
    return ListenSection(kind="tls", port=1, **files)


def test_what_cannot_be_used_is_named(certificates: Certificates, tmp_path: Path) -> None:
    locked, junk = tmp_path / "locked.key", tmp_path / "junk.pem"
    command = ["openssl", "pkey", "-in", certificates.path("gateway.key"), "-aes256", "-passout", "pass:x"]
    subprocess.run([*command, "-out", str(locked)], check=True, capture_output=True, timeout=60)
    junk.write_text("junk")
    good, key = certificates.path("gateway.pem"), certificates.path("gateway.key")
    for certificate, its_key, ca, said in (
        ("/nowhere.pem", key, None, "certificate: /nowhere.pem cannot be read: No such file"),
        (good, "/nowhere.key", None, "key: /nowhere.key cannot be read"),
        (good, certificates.path("sensor.key"), None, "belongs to another certificate"),
        (good, str(locked), None, "is locked by a password"),
        (str(junk), key, None, "are not a certificate and its key"),
        (good, key, "/nowhere.pem", "client_ca: /nowhere.pem cannot be read"),
        (good, key, str(junk), "holds no certificates"),
    ):
        files = {"certificate": certificate, "key": its_key} | ({"client_ca": ca} if ca else {})
        with pytest.raises(UsageError) as refused:
            server_context(place(**files))
        assert said in str(refused.value)
        assert "\n" not in str(refused.value)


def test_days_left(certificates: Certificates) -> None:
    def left(name: str, **others: str) -> float:
        files = {"certificate": certificates.path(f"{name}.pem"), "key": certificates.path(f"{name}.key")}
        return days_left(place(**files, **others), time.time())

    assert 29 < left("gateway") < 30.1
    assert 29 < left("gateway", client_ca=certificates.path("ca.pem")) < 30.1
    with pytest.raises(UsageError, match="certificate has expired"):
        left("old")
