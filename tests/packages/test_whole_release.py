"""A whole release: signed, built twice, and built once more by a stranger, who types what the page says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from signed_clone import MAINTAINER, SignedClone, signed_clone, typed


@pytest.mark.soak
def test_a_stranger_comes_to_the_same_bytes(tmp_path: Path) -> None:
    made = signed_clone(tmp_path, "1.2.3")
    released = made.run("make", "release", "TAG=v1.2.3", f"KEY={made.key}")
    assert released.returncode == 0, released.stderr
    assert "built twice, the same bytes" in released.stderr
    files = made.folder / "dist" / "release-1.2.3"
    assert {file.name for file in files.iterdir()} == {
        *(
            f"hushcast_1.2.3+deb{debian}_{machine}.deb"
            for debian in (12, 13)
            for machine in ("amd64", "arm64")
        ),
        *(f"hushcast-1.2.3{end}" for end in ("-py3-none-any.whl", ".tar.gz", ".lock.txt", ".sbom.json")),
        *("SHA256SUMS", f"SHA256SUMS.{MAINTAINER}.sig"),
    }
    stranger = SignedClone(tmp_path / "stranger", made.key)
    subprocess.run(["git", "clone", "--quiet", made.folder, stranger.folder], check=True)
    keys = (stranger.folder / "release-keys").read_bytes()
    (files / "release-keys").write_bytes(keys)
    verified = SignedClone(files, made.key).run("bash", "-c", typed("verify", NAME=MAINTAINER))
    assert verified.returncode == 0, verified.stderr
    rebuild = typed("rebuild", TAG="v1.2.3", FOLDER=files)
    rebuilt = stranger.run("bash", "-c", rebuild)
    assert rebuilt.returncode == 0, rebuilt.stderr
    assert "the same bytes: 8 files" in rebuilt.stderr
    changed = files / "hushcast-1.2.3.tar.gz"
    changed.write_bytes(changed.read_bytes() + b"!")
    refused = stranger.run("bash", "-c", rebuild)
    assert "are not those of its sums" in refused.stderr
