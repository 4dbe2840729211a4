"""The drill: a wire 2 that differs as a real one would, and programs of three releases in one process.

Its kinds are said from the newest and to it by the table that programs have, as those of an older wire are. A
field was added, a field has another meaning, a kind is gone and another says what it said; and the inside of
heads has a field more. Who publishes tries less often, and other numbers of its manner differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import pytest
import trio

from hushcast_protocol.authorities.directory_requests import RelayRegistered
from hushcast_protocol.authorities.head_inside import AuthorityKeys, BeaconState, HeadInside
from hushcast_protocol.base.candidate_root import CandidateRoots
from hushcast_protocol.base.crypto.proof_of_work import ProofOfWork
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.base.versions import wires
from hushcast_protocol.base.versions.manner import Manner
from hushcast_protocol.base.versions.translations import Translation
from hushcast_protocol.base.versions.wires import WIRES, WireTable
from hushcast_protocol.base.wire import Bytes16, Bytes32, Counter, RelayId, Wire
from hushcast_protocol.central.frames import AcknowledgeDeliveries, ServerDelivery
from hushcast_protocol.central.rerouting import WrappedMessage
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.frames import Ack, Forward, Ping
from hushcast_protocol.overlay.leases import Instruction
from hushcast_protocol.overlay.parcels import OnwardParcel, Parcel


class Forward2(Wire, frozen=True, tag="forward/2"):
    """A field was added; without a message it says what a ping said."""

    message: Message | None
    colour: Counter


class Ack2(Wire, frozen=True, tag="ack/2"):
    """A field has another meaning: the number of the forward that is awaited next."""

    awaits: Counter
    unrouted: tuple[Counter, ...]


class RelayRegistered2(Wire, frozen=True, tag="registered/2"):
    """A kind of directories, too."""

    is_welcome: bool


class Acknowledge2(Wire, frozen=True, tag="acknowledge/2"):
    """Of a central network: users to proxies."""

    number: Counter
    proof: Bytes16
    colour: Counter


class ServerDelivery2(Wire, frozen=True, tag="deliver/2"):
    """The server to proxies; fields in another order."""

    wrapped: WrappedMessage
    attachment: Counter


class Parcel3(Wire, frozen=True, tag="parcel/3"):
    """What a relay alone reads, inside its seal; fields in another order, and one more."""

    word: Bytes16
    stamp: ProofOfWork | None
    onward: tuple[OnwardParcel, ...]
    patience: Counter
    instruction: Instruction | None
    epoch: Counter
    relay: RelayId
    network: Bytes32
    colour: Counter


class HeadInside2(Wire, frozen=True, tag="inside/2"):
    """As it is, and a field more."""

    root: Bytes32
    count: Counter
    draw: BeaconState
    faults: AuthorityKeys
    shards: tuple[Sharding, ...]
    candidates: CandidateRoots
    colour: Counter


COLOUR = 7


def _forward(said: Forward2) -> Wire:
    if said.colour != COLOUR:
        raise DecodeError("a forward has another colour than all")
    return Ping() if said.message is None else Forward(said.message)


DRILL = Translation(
    up={
        Forward2: _forward,
        Ack2: lambda said: Ack(said.awaits - 1, said.unrouted),
        Acknowledge2: lambda said: AcknowledgeDeliveries(said.number, said.proof),
        ServerDelivery2: lambda said: ServerDelivery(said.attachment, said.wrapped),
        RelayRegistered2: lambda said: RelayRegistered(),
        Parcel3: lambda said: Parcel(
            said.network,
            said.relay,
            said.epoch,
            said.instruction,
            said.patience,
            said.onward,
            said.word,
            said.stamp,
        ),
        HeadInside2: lambda said: HeadInside(
            said.root, said.count, said.draw, said.faults, said.shards, said.candidates
        ),
    },
    down={
        Forward: lambda said: Forward2(said.message, COLOUR),
        Ping: lambda said: Forward2(None, COLOUR),
        Ack: lambda said: Ack2(said.number + 1, said.unrouted),
        AcknowledgeDeliveries: lambda said: Acknowledge2(said.number, said.proof, COLOUR),
        ServerDelivery: lambda said: ServerDelivery2(said.wrapped, said.attachment),
        RelayRegistered: lambda said: RelayRegistered2(True),
        Parcel: lambda said: Parcel3(
            said.word,
            said.stamp,
            said.onward,
            said.patience,
            said.instruction,
            said.epoch,
            said.relay,
            said.network,
            COLOUR,
        ),
        HeadInside: lambda said: HeadInside2(
            said.root, said.count, said.draw, said.faults, said.shards, said.candidates, COLOUR
        ),
    },
    manner=Manner(attempts=2, first_retry=90.0, quiet_for=30.0),
)
FURTHER = Translation({}, {}, Manner(attempts=1, first_retry=10.0))
"""A wire that no network goes on to here."""

BEFORE = WIRES
"""The release of now."""
BOTH = WireTable({**WIRES.rows, 2: "drilled_wire:DRILL"})
"""The next one."""
LATER = WireTable({**BOTH.rows, 3: "drilled_wire:FURTHER"})
"""The one after that: its own manner is that of a wire to come."""

_release: ContextVar[WireTable] = ContextVar("release", default=BEFORE)


class LinksOpened:
    """In which wire programs opened links, and when."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *modules: object) -> None:
        """`modules` are those that open them."""
        self.links: list[tuple[float, int]] = []
        opened = self.links

        class Recorded(Link):
            @classmethod
            def initiate(cls, *arguments: Any, **named: Any) -> Link:
                link = Link.initiate(*arguments, **named)
                opened.append((trio.current_time(), link.wire))
                return link

        for module in modules:
            monkeypatch.setattr(module, "Link", Recorded)

    def between(self, begin: float, end: float) -> set[int]:
        return {wire for at, wire in self.links if begin <= at < end}


def mix_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each program of this process speak what the release does that it was started as."""
    monkeypatch.setattr(wires, "table", _release.get)


@contextmanager
def release(table: WireTable) -> Iterator[None]:
    """Start programs as a release: their tasks, and those of tasks, are of it."""
    token = _release.set(table)
    try:
        yield
    finally:
        _release.reset(token)
