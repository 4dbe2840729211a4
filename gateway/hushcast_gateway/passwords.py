"""Passwords: hashed by Argon2id, and compared in few worker threads whatever a flood asks for."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import blake2b
from hmac import compare_digest

import nacl.exceptions
import trio
from nacl import pwhash

from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.environment import Compute

MAX_COMPARED = 2  # comparisons at once: each takes 64 MiB and a tenth of a second of a core
MAX_WAITING = 32  # that wait for one of these: two seconds, of the ten in which a client has to be let in
MAX_KNOWN_AGAIN = 1_000  # passwords that were right: as many as there may be users
MAX_MEMORY = 262_144  # KiB that a hash may take
MAX_PASSES = 10  # over that memory
MAX_PASSWORD = 1_024  # bytes

_HASH = re.compile(r"\$argon2id\$v=19\$m=(\d{1,9}),t=(\d{1,4}),p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}\Z")


class TooBusy(Exception):
    """So many passwords wait to be compared that another would wait in vain."""


def hashed(password: bytes) -> str:
    """Return what a configuration holds of a password: an Argon2id hash with its salt.

    Raises `UsageError` for one that nobody could give, or that is none.
    """
    if not 1 <= len(password) <= MAX_PASSWORD:
        raise UsageError(f"a password has 1 to {MAX_PASSWORD} bytes")
    return pwhash.argon2id.str(password).decode()


def problem(text: str) -> str | None:
    """Return why a text cannot be the hash of a password, `None` if it can."""
    found = _HASH.match(text)
    if found is None:
        return "not an Argon2id hash: `hushcast gateway passwd` makes one, and asks for the password"
    if not (8 <= int(found[1]) <= MAX_MEMORY and 1 <= int(found[2]) <= MAX_PASSES):
        return f"over {MAX_MEMORY} KiB or {MAX_PASSES} passes: `hushcast gateway passwd` makes a cheaper one"
    return None


class Passwords:
    """Compares passwords, `MAX_COMPARED` at once; one more than `MAX_WAITING` behind them is refused.

    A password that was right is known again at once, by a hash with a key that lives as long as the process:
    who came before a flood of wrong ones comes back during it.
    """

    def __init__(
        self,
        compute: Compute,
        randomness: Randomness,
        compare: Callable[[str, bytes], bool] | None = None,
    ) -> None:
        self._compute = compute
        self._compare = compare or _compare
        self._places = trio.CapacityLimiter(MAX_COMPARED)
        self._key = randomness(32)
        self._right: dict[str, bytes] = {}

    async def are_equal(self, known: str, given: bytes) -> bool:
        """Tell whether a password has this hash; raises `TooBusy`."""
        digest = blake2b(given, key=self._key, digest_size=32).digest()
        if compare_digest(self._right.get(known, b""), digest):
            await trio.lowlevel.checkpoint()
            return True
        is_right = await self.take_as_long(known, given)
        if is_right:
            if len(self._right) >= MAX_KNOWN_AGAIN:
                self._right.clear()
            self._right[known] = digest
        return is_right

    async def take_as_long(self, known: str, given: bytes) -> bool:
        """Compare as if it were the first time, for a user who is none; raises `TooBusy`."""
        if self._places.statistics().tasks_waiting >= MAX_WAITING:
            raise TooBusy
        async with self._places:
            return await self._compute(self._compare, known, given)


def _compare(known: str, given: bytes) -> bool:
    try:
        return pwhash.verify(known.encode(), given)
    except nacl.exceptions.InvalidkeyError:
        return False
