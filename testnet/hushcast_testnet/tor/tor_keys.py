"""Keys of a private Tor network: what its directory authorities are known by."""

from __future__ import annotations

import re
import secrets
import shutil
import subprocess
from pathlib import Path

import trio

from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.transports.base import TransportError

_FINGERPRINT = re.compile(r"^fingerprint ([0-9A-F]{40})$", re.MULTILINE)
_RELAY_FINGERPRINT = re.compile(r"^\S+ ((?:[0-9A-F]{4} ?){10})$", re.MULTILINE)
_CERTIFICATE_MONTHS = "12"


def find_program(name: str) -> str:
    """Return the path of the program `name`; raise `UsageError` when this machine lacks it."""
    if path := shutil.which(name):
        return path
    raise UsageError(f"{name} is not installed: a private Tor network needs Debian's package tor")


async def make_authority(data: Path, host: str, or_port: int, dir_port: int) -> tuple[str, str]:
    """Make the keys of a directory authority in its data directory, which exists with mode 0700.

    Returns its v3 identity and its relay fingerprint, 40 upper-case hex digits each. Raises `UsageError`
    when a program is missing and `TransportError` when one fails.
    """
    keys = data / "keys"
    keys.mkdir(mode=0o700)
    gencert = [find_program("tor-gencert"), "--create-identity-key", "--passphrase-fd", "0"]
    gencert += ["-m", _CERTIFICATE_MONTHS, "-a", f"{host}:{dir_port}"]
    for option, name in (("-i", "identity_key"), ("-s", "signing_key"), ("-c", "certificate")):
        gencert += [option, str(keys / f"authority_{name}")]
    # The passphrase guards an identity key that nobody uses again: a network is made anew each time.
    await _run(gencert, secrets.token_hex(16).encode() + b"\n")
    identity = _FINGERPRINT.search((keys / "authority_certificate").read_text())
    nowhere = str(data / "no-torrc")  # the machine's own configuration must not mix in
    listing = [find_program("tor"), "--list-fingerprint", "--hush", "--ignore-missing-torrc"]
    listing += ["-f", nowhere, "--defaults-torrc", nowhere, "--DataDirectory", str(data)]
    listing += ["--ORPort", str(or_port), "--DirAuthority", f"dummy 127.0.0.1:{dir_port} {'0' * 40}"]
    fingerprint = _RELAY_FINGERPRINT.search(await _run(listing, b""))
    if identity is None or fingerprint is None:
        raise TransportError("tor's key programs answered in an unknown form")
    return identity[1], fingerprint[1].replace(" ", "")


async def _run(command: list[str], stdin: bytes) -> str:
    try:
        done = await trio.run_process(
            command, stdin=stdin, capture_stdout=True, stderr=subprocess.DEVNULL, cwd="/"
        )
    except subprocess.CalledProcessError as error:
        raise TransportError(f"{Path(command[0]).name} failed with status {error.returncode}") from None
    return bytes(done.stdout).decode(errors="replace")
