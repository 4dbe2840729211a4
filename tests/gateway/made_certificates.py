"""Certificates for tests, made by openssl."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Certificates:
    """An authority, and what it signed: for the gateway at 127.0.0.1, and for a client called `sensor`."""

    directory: Path

    def path(self, name: str) -> str:
        """Return a file: `ca.pem`, `gateway.pem`, `gateway.key`, `sensor.pem`, `sensor.key`."""
        return str(self.directory / name)


def make(directory: Path) -> Certificates:
    """Make them in a directory; `old` is what `sensor` is, and has expired."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True, timeout=60)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl(
        "req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "30", "-subj", "/CN=authority"
    )
    for name, days in (("gateway", "30"), ("sensor", "30"), ("old", "-1")):
        (directory / "names").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
        openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names")
        openssl("x509", "-req", "-in", f"{name}.csr", *signed, "-days", days, "-out", f"{name}.pem")
    return Certificates(directory)
