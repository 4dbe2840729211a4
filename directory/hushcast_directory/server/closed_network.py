"""Closed networks: a file with the names of the relays that may be listed, whoever else comes."""

from __future__ import annotations

from pathlib import Path

from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.roster import MAX_SEATED
from hushcast_protocol.base.wire import RelayId

MAX_NAMES_FILE = MAX_SEATED * 256  # bytes: a name on each line, and room for a comment behind it

_NAME = 64  # hexadecimal digits


def read_names(file: Path) -> frozenset[RelayId]:
    """Return the names in a file; raise `UsageError` if it cannot be read, and as `names_in`."""
    try:
        with file.open("rb") as opened:
            return names_in(opened.read(MAX_NAMES_FILE + 1), str(file))
    except OSError as error:
        raise UsageError(f"{file}: the relays of a closed network cannot be read: {error}") from None


def names_in(data: bytes, file: str) -> frozenset[RelayId]:
    """Return the names in a text: one a line, 64 hexadecimal digits; `#` begins a comment.

    Raises `UsageError`, with the line, if it says something else.
    """
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        raise UsageError(f"{file}: the relays of a closed network cannot be read: not a text") from None
    if len(data) > MAX_NAMES_FILE:
        raise UsageError(f"{file}: the list of relays is over {MAX_NAMES_FILE:,} bytes")
    names = set()
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        try:
            name = bytes.fromhex(text)
        except ValueError:
            name = b""
        if len(text) != _NAME or len(name) != _NAME // 2:
            raise UsageError(
                f"{file}, line {number}: not the name of a relay, which has {_NAME} hexadecimal digits:"
                " `hushcast status` on its machine shows it"
            )
        names.add(name)
    if len(names) > MAX_SEATED:
        raise UsageError(f"{file}: lists {len(names):,} relays, and a network has {MAX_SEATED:,} at most")
    return frozenset(names)
