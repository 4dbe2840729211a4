"""Reservations that whoever runs a gateway takes away, in place of a user that is gone or cannot.

The command leaves a file in the gateway's state, where nobody else can; a gateway that runs looks for one
each second, another when it starts.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import trio

from hushcast_gateway.broker_state import BrokerState
from hushcast_gateway.purposes.rules import Purposes
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.purposes.clauses import Clause
from hushcast_runtime.files import write_private

FILE = "purposes-to-drop"
LOOK_EVERY = 1.0  # seconds between two looks for what is to be taken away
AT_ONCE = 500  # reservations taken away in one step; some 10 ms of CPU for the longest filters


class ReservationRemoval(msgspec.Struct, frozen=True, array_like=True):
    """What is to be taken away: an owner's reservation of a filter, all of the owner's for `None`."""

    owner: str
    filter: str | None


def ask_to_drop(state: Path, asked: ReservationRemoval) -> Path:
    """Leave word in a gateway's state; return the file, which is gone when it was taken.

    Raises `UsageError` where an earlier word was not taken yet.
    """
    path = state / FILE
    if path.exists():
        raise UsageError("the gateway has not taken away yet what was dropped before: start it first")
    write_private(path, msgspec.msgpack.encode(asked))
    return path


def to_be_dropped(state: Path) -> ReservationRemoval | None:
    """Return what is to be taken away, `None` for nothing; what cannot be read is nothing."""
    try:
        return msgspec.msgpack.decode((state / FILE).read_bytes(), type=ReservationRemoval)
    except (OSError, msgspec.MsgspecError):
        return None


def is_to_be_dropped(one: Clause, asked: ReservationRemoval) -> bool:
    """Tell whether a reservation is meant."""
    return one.owner == asked.owner and asked.filter in (None, one.filter)


class ReservationRemover:
    """Takes away what it is asked to."""

    def __init__(self, state: Path, purposes: Purposes, broker: BrokerState) -> None:
        """`state` is the gateway's directory."""
        self._path = state / FILE
        self._purposes = purposes
        self._broker = broker

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            if self._path.exists():
                if (asked := to_be_dropped(self._path.parent)) is not None:
                    await self._drop(asked)
                self._path.unlink(missing_ok=True)
            await trio.sleep(LOOK_EVERY)

    async def _drop(self, asked: ReservationRemoval) -> None:
        ledger = self._broker.broker.ledger
        before, stored = ledger.made, trio.Event()
        # What is reserved meanwhile stays: else whoever reserves without end would never let this end.
        found = [one for one in self._purposes.kept.owned(asked.owner) if asked.filter in (None, one)]
        for start in range(0, len(found), AT_ONCE):
            self._purposes.drop(asked.owner, found[start : start + AT_ONCE])
            self._broker.changed()
            await trio.lowlevel.checkpoint()
        ledger.once_stored(before, stored.set)
        self._broker.changed()
        await stored.wait()
