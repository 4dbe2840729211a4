"""Wheel and sdist are the same bytes wherever they are built; what is not to be released is refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from signed_clone import MAINTAINER, ROOT, SignedClone, signed_clone, typed

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PINNED = re.compile(r"^([a-z0-9-]+)==(\S+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> SignedClone:
    return signed_clone(tmp_path_factory.mktemp("maintainer"), "1.2.3")


@pytest.mark.slow
def test_wheel_and_sdist_are_the_same_bytes_twice(tmp_path: Path) -> None:
    built = []
    for folder, umask, zone in (("one", 0o022, "UTC"), ("two, at another place", 0o077, "Asia/Tokyo")):
        clone, out = tmp_path / folder / "hushcast", tmp_path / f"{folder}.out"
        before = os.umask(umask)
        try:
            subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
            environment = os.environ | {"TZ": zone, "SOURCE_DATE_EPOCH": "1700000000"}
            build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", out, clone]
            subprocess.run(build, env=environment, check=True, capture_output=True)
        finally:
            os.umask(before)
        built.append({file.name: file.read_bytes() for file in out.iterdir()})
    assert built[0].keys() == built[1].keys()
    assert [name for name in built[0] if built[0][name] != built[1][name]] == []


@pytest.mark.slow
def test_what_is_not_signed_is_not_released(made: SignedClone) -> None:
    made.git("tag", "--force", "v7")
    refused = made.run("tools/release", "v7")
    assert refused.returncode == 1
    assert "v7 is not a tag with a signature by a key in release-keys" in refused.stderr
    other = made.folder.parent / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other], check=True)
    SignedClone(made.folder, other).git("tag", "--sign", "--force", "--message", "mine", "v8")
    assert "v8 is not a tag with a signature" in made.run("tools/release", "v8").stderr
    made.git("tag", "--sign", "--message", "another number", "v9.9.9")
    assert "the tag is to be v1.2.3" in made.run("tools/release", "v9.9.9").stderr


@pytest.mark.slow
def test_what_was_signed_before_is_not_overwritten(made: SignedClone) -> None:
    there = made.folder / "dist" / "release-1.2.3"
    there.mkdir(parents=True)
    refused = made.run("tools/release", "v1.2.3")
    there.rmdir()
    assert refused.returncode == 1
    assert "dist/release-1.2.3 is there" in refused.stderr


@pytest.mark.slow
def test_a_changelog_without_a_date_is_not_released(tmp_path: Path) -> None:
    made = signed_clone(tmp_path, "1.2.4")
    made.rewrite("CHANGELOG.md", r"^## \[.*$", "## [1.2.4] - unreleased")
    made.commit()
    made.git("tag", "--sign", "--force", "--message", "1.2.4", "v1.2.4")
    assert "CHANGELOG.md has no date for 1.2.4 at v1.2.4" in made.run("tools/release", "v1.2.4").stderr


@pytest.mark.slow
def test_a_stranger_verifies_by_what_the_page_says(made: SignedClone, tmp_path: Path) -> None:
    """The commands as they stand, with files that somebody signed, and with one that somebody changed."""
    file = tmp_path / "hushcast-1.2.3.tar.gz"
    file.write_bytes(b"all that there is")
    sums = subprocess.run(["sha256sum", file.name], cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "SHA256SUMS").write_bytes(sums.stdout)
    sign = ["ssh-keygen", "-q", "-Y", "sign", "-f", made.key, "-n", "hushcast-release", "SHA256SUMS"]
    subprocess.run(sign, cwd=tmp_path, check=True)
    (tmp_path / "SHA256SUMS.sig").rename(tmp_path / f"SHA256SUMS.{MAINTAINER}.sig")
    (tmp_path / "release-keys").write_bytes((made.folder / "release-keys").read_bytes())

    def typing() -> subprocess.CompletedProcess[str]:
        script = typed("verify", NAME=MAINTAINER)
        return subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)

    good = typing()
    assert good.returncode == 0, good.stderr
    assert f'Good "hushcast-release" signature for {MAINTAINER}' in good.stdout
    file.write_bytes(b"all that there is, and more")
    assert typing().returncode == 1
    changed = subprocess.run(["sha256sum", file.name], cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "SHA256SUMS").write_bytes(changed.stdout)
    assert "Could not verify signature" in typing().stdout


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("11", "amd64"), "Packages are for Debian 12 and 13, not 11: say for which"),
        (("13", "riscv64"), "Packages are for amd64 and arm64, not riscv64."),
    ],
)
def test_packages_are_for_named_systems_alone(tmp_path: Path, asked: tuple[str, str], told: str) -> None:
    command = [ROOT / "tools" / "build-deb", tmp_path, *asked]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert told in refused.stderr


def pinned(name: str) -> dict[str, str]:
    text = (ROOT / "tools" / "lock" / name).read_text()
    found = PINNED.findall(text)
    assert "".join(f"{one}=={version} \\\n{hashes}" for one, version, hashes in found) == text
    return {one: version for one, version, _ in found}


@pytest.mark.parametrize(
    ("name", "extras"),
    [
        ("runtime.txt", ("gateway", "tui", "watch")),
        ("building.txt", ("gateway", "tui", "watch", "release")),
    ],
)
def test_locks_are_of_what_the_project_asks_for(name: str, extras: tuple[str, ...]) -> None:
    locked = pinned(name)
    asked = [
        *PROJECT["dependencies"],
        *(one for extra in extras for one in PROJECT["optional-dependencies"][extra]),
    ]
    for requirement in map(Requirement, asked):
        assert requirement.specifier.contains(locked[requirement.name.lower()]), f"`make lock`: {requirement}"
    assert pinned("building.txt").items() >= pinned("runtime.txt").items()
