"""Record kinds: what the records of a kind hold, whose state it is, for how long, and how many there are."""

from __future__ import annotations

from enum import Enum
from typing import Self


class StateOwner(Enum):
    """Who keeps state on disk; the value is a heading of docs/state.md."""

    EVERY_PROGRAM = "Every program"
    DAEMON = "A daemon, for its applications"
    OVERLAY_DAEMON = "A daemon of an overlay network"
    RELAY = "A relay"
    DIRECTORY = "A directory"
    CENTRAL_DAEMON = "A daemon of a central network"
    SERVER = "The server of a central network"
    PROXY = "A proxy"
    BROKERS_DAEMON = "A daemon of a network of brokers"
    BROKER = "A broker"
    TOMOGRAPHY = "The tomography service"
    GATEWAY = "A gateway"
    PROVIDER = "A provider of located feeds"
    OWNER = "An owner of a located feed"


class RecordKind(str):
    """The name of a kind of records in a store, declared once by the code that writes them."""

    __slots__ = ("bound", "holds", "lifetime", "owners")

    owners: tuple[StateOwner, ...]
    holds: str
    lifetime: str
    """For how long they stay."""
    bound: str
    """How much of it there is at most; empty where that follows from something else."""

    def __new__(
        cls, name: str, owner: StateOwner, *others: StateOwner, holds: str, lifetime: str, bound: str = ""
    ) -> Self:
        """Declare a kind; one of several owners has its records in a store of its own."""
        kind = super().__new__(cls, name)
        kind.owners = (owner, *others)
        kind.holds = holds
        kind.lifetime = lifetime
        kind.bound = bound
        return kind
