"""The Debian package of a release to come, made of this one's: files of `next_release`, a higher version."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import next_release


def make(package: Path, directory: Path) -> Path:
    """Write it into a directory; return its path."""
    root, new = directory / "root", directory / "next.deb"
    subprocess.run(["dpkg-deb", "--raw-extract", package, root], check=True)
    control = root / "DEBIAN" / "control"
    control.write_text(re.sub(r"^Version: (.*)$", r"Version: \1+1", control.read_text(), flags=re.MULTILINE))
    (site,) = (root / "opt" / "hushcast" / "lib").glob("python*/site-packages")
    next_release.change(lambda name: site / name.partition("/")[2])
    subprocess.run(["dpkg-deb", "-Znone", "--root-owner-group", "--build", root, new], check=True)
    return new
