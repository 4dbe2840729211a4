"""A clone of these sources with a maintainer of its own, who has signed the tag of a version."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "releases.md"
MAINTAINER = "ada"


@dataclass(frozen=True)
class SignedClone:
    """A clone, and the key of its maintainer."""

    folder: Path
    key: Path

    def run(self, *command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a program in the clone, as nobody who has settings of their own."""
        home = {"HOME": str(self.folder.parent), "GIT_CONFIG_NOSYSTEM": "1"}
        return subprocess.run(
            command,
            cwd=self.folder,
            env=os.environ | home | environment,
            capture_output=True,
            text=True,
            timeout=1800,
            check=False,
        )

    def git(self, *arguments: str | Path) -> None:
        who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        signs = ("-c", "gpg.format=ssh", "-c", f"user.signingKey={self.key}")
        done = self.run("git", *who, *signs, *arguments)
        assert done.returncode == 0, done.stderr

    def rewrite(self, name: str, pattern: str, by: str) -> None:
        file = self.folder / name
        text, count = re.subn(pattern, by, file.read_text(), count=1, flags=re.MULTILINE)
        assert count == 1
        file.write_text(text)

    def commit(self) -> None:
        self.git("commit", "--quiet", "--all", "--message", "for a test")


def signed_clone(folder: Path, version: str) -> SignedClone:
    """Return a clone of the last commit, with a date and a signed tag for a version."""
    clone, key = folder / "clone", folder / "key"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key], check=True)
    made = SignedClone(clone, key)
    public = key.with_suffix(".pub").read_text()
    keys = clone / "release-keys"
    keys.write_text(f'{keys.read_text()}{MAINTAINER} namespaces="git,hushcast-release" {public}')
    made.rewrite("pyproject.toml", r'^version = ".*"$', f'version = "{version}"')
    made.rewrite("CHANGELOG.md", r"^## \[.*$", f"## [{version}] - 2026-01-01")
    made.commit()
    made.git("tag", "--sign", "--message", version, f"v{version}")
    return made


def typed(note: str, **words: str | Path) -> str:
    """Return the commands of a block of the page, with words of its own in place of those in capitals."""
    (text,) = re.findall(rf"<!-- typed: {note} -->\n```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    for word, value in words.items():
        text, count = re.subn(rf"(?<![A-Z]){word}(?![A-Z=])", str(value), text)
        assert count
    return f"set -e\n{text}"
