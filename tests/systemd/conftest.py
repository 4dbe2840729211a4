"""A machine for the tests of this folder: systemd booted in a container, our package, a private Tor."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from booted import ROOT, Machine, boot, missing


@pytest.fixture(scope="session")
def package() -> Path:
    """Build the Debian package, where there is a use for it."""
    if reason := missing():
        pytest.skip(f"NOT TESTED: {reason}")
    subprocess.run(["make", "deb"], cwd=ROOT, check=True, stdout=subprocess.PIPE, timeout=600)
    (package,) = (ROOT / "dist").glob("hushcast_*.deb")
    return package


@pytest.fixture(scope="package")
def machine(package: Path) -> Iterator[Machine]:
    """Boot a machine with the package installed and a private Tor network that its tor has joined."""
    with boot() as machine:
        machine.install(package)
        machine.join_private_tor()
        yield machine
