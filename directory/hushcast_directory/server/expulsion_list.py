"""The list of expelled relays: a file that `hushcast admin directory probe` writes and a directory reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import trio

from hushcast_protocol.authorities.expulsion import ExpelledRelay
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.roster import MAX_SEATED
from hushcast_runtime.files import write_private
from hushcast_runtime.logs import log

MAX_EXPELLED_FILE = MAX_SEATED * 256  # bytes: a relay on each line, and room for why
LOOK_WITHIN = 60.0  # seconds after which a changed list is read; before an epoch's ballots in any case

_HEADER = "# Relays that this directory leaves out: a name, the epoch since when, and why.\n"
_LINE = re.compile(r"([0-9a-fA-F]{64})\s+([0-9]{1,15})")


class ExpulsionList:
    """A list that may change while it is used."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._seen: tuple[int, int, int] | None = None

    def changed(self) -> tuple[ExpelledRelay, ...] | None:
        """Return what the list says if it is not what was read last, `None` if it is.

        No file is an empty list: whoever writes it needs the directory first. Raises `UsageError` as `read`.
        """
        try:
            told = self.file.stat()
        except FileNotFoundError:
            mark = (0, 0, 0)
        except OSError as error:
            raise UsageError(_cannot(self.file, error)) from None
        else:
            mark = (told.st_mtime_ns, told.st_ino, told.st_size)
        if mark == self._seen:
            return None
        data = _data(self.file)  # where that fails it is tried again
        self._seen = mark
        return listed_in(data, str(self.file))


async def follow(
    file: Callable[[], ExpulsionList | None], expel: Callable[[Sequence[ExpelledRelay]], None], pause: float
) -> None:
    """Look every so many seconds whether a list has changed, and take it; until cancelled.

    One that cannot be used changes nothing.
    """
    while True:
        await trio.sleep(min(pause, LOOK_WITHIN))
        if (looked := file()) is None:
            continue
        try:
            changed = looked.changed()
        except UsageError as error:
            log.warning("expelled relays: going on with the list before", reason=str(error))
            continue
        if changed is not None:
            expel(changed)
            log.info("expelled relays read", relays=len(changed))


def read(file: Path) -> tuple[ExpelledRelay, ...]:
    """Return what a list says, nobody where there is none; raise `UsageError` if it cannot be used."""
    return listed_in(_data(file), str(file))


def _data(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(MAX_EXPELLED_FILE + 1)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise UsageError(_cannot(file, error)) from None


def listed_in(data: bytes, file: str) -> tuple[ExpelledRelay, ...]:
    """Return what a text says: on each line 64 hexadecimal digits and an epoch; behind `#` stands why.

    Raises `UsageError`, with the line, if it says something else.
    """
    if len(data) > MAX_EXPELLED_FILE:
        raise UsageError(f"{file}: the list of expelled relays is over {MAX_EXPELLED_FILE:,} bytes")
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        raise UsageError(f"{file}: the expelled relays cannot be read: not a text") from None
    found = []
    for number, line in enumerate(lines, 1):
        text, _, why = line.partition("#")
        if not text.strip():
            continue
        if (match := _LINE.fullmatch(text.strip())) is None:
            raise UsageError(
                f"{file}, line {number}: not the name of a relay, of 64 hexadecimal digits, and an epoch"
            )
        found.append(ExpelledRelay(bytes.fromhex(match[1]), int(match[2]), why.strip()))
    return tuple(found)


def write(file: Path, expelled: Iterable[ExpelledRelay]) -> None:
    """Write a list, for its owner alone; a crash leaves the old or the new one."""
    lines = [f"{one.relay.hex()} {one.since}  # {one.why}".rstrip(" #") + "\n" for one in expelled]
    write_private(file, (_HEADER + "".join(lines)).encode())


def _cannot(file: Path, error: OSError) -> str:
    return f"{file}: the expelled relays cannot be read: {error.strerror}"
