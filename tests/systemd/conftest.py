"""A machine for the tests of this folder: systemd booted in a container, our package, a private Tor."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from booted import ROOT, Machine, boot, missing


@pytest.fixture(scope="session")
def package(request: pytest.FixtureRequest) -> Path:
    """Build the Debian package, where there is a use for it: as released, but not compressed."""
    if reason := missing():
        pytest.skip(f"NOT TESTED: {reason}")
    dist = request.getfixturevalue("dist")
    environment = os.environ | {"DPKG_DEB_COMPRESSOR_TYPE": "none"}
    built = subprocess.run(
        [ROOT / "tools" / "build-deb", dist],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (package,) = dist.glob("hushcast_*.deb")
    return Path(package)


@pytest.fixture(scope="package")
def machine(package: Path) -> Iterator[Machine]:
    """Boot a machine with the package installed and a private Tor network that its tor has joined."""
    with boot() as machine:
        machine.install(package)
        machine.join_private_tor()
        yield machine
