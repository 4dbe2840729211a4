"""Which user connects to a loopback port, by the kernel's table of TCP sockets.

A port to which a system's tor passes streams is open to every user of the machine, and somebody who gets
through learns an onion service's key. So only connections that tor itself opened are admitted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import trio

OVERFLOW = 65534  # what the kernel shows in place of every user that this user namespace has no number for
_ESTABLISHED = "01"
_LOOKS = 2  # the kernel tells the table a page at a time, and can pass over a line if others go meanwhile
_SOCKETS = Path("/proc/self/net/tcp")
_USERS = Path("/proc/self/uid_map")
_NUMBER = re.compile(r"\d{1,10}\Z")


def port_name(host: str, port: int) -> str:
    """Return an IPv4 end of a connection as the kernel's table writes it, bytes of the host in its order."""
    return f"{int.from_bytes(bytes(map(int, host.split('.'))), 'little'):08X}:{port:04X}"


def user_of(table: str, caller: tuple[str, int], listener: tuple[str, int]) -> int | None:
    """Return the user whose socket at `caller` is connected to `listener`, both (IPv4 host, port).

    `None` if the table has no such socket, or one that its program has closed: those belong to nobody.
    """
    place = table.find(f" {port_name(*caller)} {port_name(*listener)} {_ESTABLISHED} ")
    end = table.find("\n", place)
    if place < 0 or end < 0:
        return None
    fields = table[place:end].split()  # local_address rem_address st tx:rx tr:when retrnsmt uid …
    return int(fields[6]) if len(fields) > 6 and _NUMBER.match(fields[6]) else None


def can_be_told(user: int, users: str) -> bool:
    """Tell whether a user, of the number that tor gives itself, is told apart from all others here.

    `users` is this process's table of user numbers (user_namespaces(7)): who is not in it is shown as
    `OVERFLOW`, like everybody else who is not.
    """
    return user != OVERFLOW and any(user in known for known in _known(users))


def _known(users: str) -> Iterator[range]:
    for line in users.splitlines():
        first, _, count = map(int, line.split())
        yield range(first, first + count)


def tells_apart(user: int) -> bool:
    """Tell whether this process can see which sockets are a user's and which are not."""
    try:
        _SOCKETS.read_text()
        return can_be_told(user, _USERS.read_text())
    except (OSError, ValueError):
        return False


class SocketTable:
    """The kernel's table of sockets; requests that come while it is being read share the next reading.

    With thousands of connections a reading takes milliseconds, and a flood must not cost one a stream.
    """

    def __init__(self) -> None:
        self._turn = trio.Lock()
        self._begun = 0
        self._text = ""

    async def read(self) -> str:
        """Return the table as it is now; raise `OSError`."""
        before = self._begun
        async with self._turn:
            if self._begun == before:
                self._begun += 1
                self._text = ""
                self._text = await trio.to_thread.run_sync(_SOCKETS.read_text)
            return self._text


async def is_of(stream: trio.SocketStream, user: int, table: SocketTable | None = None) -> bool:
    """Tell whether a user's socket is at the other end of a loopback stream; what cannot be seen is not."""
    table = table or SocketTable()
    try:
        caller, listener = stream.socket.getpeername(), stream.socket.getsockname()
        for _ in range(_LOOKS):
            found = user_of(await table.read(), caller, listener)
            if found is not None:
                return found == user
    except (OSError, ValueError):
        pass
    return False
