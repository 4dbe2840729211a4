"""Plain values around the machine of an authority: its phase, what it wants done, what it has to remember."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum

import msgspec

from hushcast_protocol.authorities.chain import ChainState
from hushcast_protocol.authorities.evidence import Evidence, Fork
from hushcast_protocol.authorities.frames import AuthorityFrame
from hushcast_protocol.authorities.heads import CertifiedHead
from hushcast_protocol.authorities.listing import Listing
from hushcast_protocol.base.wire import PublicKey


class Phase(IntEnum):
    """What the machine is about."""

    WAITING = 0
    GATHERING = 1
    VOTING = 2
    ASSENTING = 3
    STOPPED = 4


class AuthorityState(msgspec.Struct, frozen=True, array_like=True):
    """All that has to outlast a restart; an authority that lost it needs a new key."""

    chain: ChainState
    voted: int = -1
    """The last epoch that a ballot was cast for."""
    assented: int = -1
    """The last epoch that a head was assented to."""


class AuthorityCommand(Enum):
    """What is to be done, where the name says all."""

    GATHER = "exchange descriptors with the other authorities: ballots are cast soon"
    VOTE = "call `cast` at once, with who is to be listed"


@dataclass(frozen=True, slots=True)
class Keep:
    """Have this on disk before anything that follows is done: the later one replaces the earlier."""

    kept: AuthorityState
    listing: Listing | None = None
    """Of a head that is assented to: without it none could follow. Two days of them are kept."""


@dataclass(frozen=True, slots=True)
class SendFrame:
    """Send a frame to other authorities, by their keys; it may be lost."""

    to: tuple[PublicKey, ...]
    frame: AuthorityFrame


@dataclass(frozen=True, slots=True)
class PublishHead:
    """Serve this head from now on, with the relays that it stands for."""

    certified: CertifiedHead
    listing: Listing


@dataclass(frozen=True, slots=True)
class Accuse:
    """Keep and show evidence: one of the authorities said two things."""

    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Stop:
    """Keep and show the proof that there are two heads of one epoch; the machine votes no more."""

    fork: Fork


AuthorityAction = AuthorityCommand | Keep | SendFrame | PublishHead | Accuse | Stop
AuthorityActions = list[AuthorityAction]
