"""The directories that a configuration names, made a source of rosters: one, or several from the start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

from hushcast_directory.client import DirectoryClient
from hushcast_directory.following import Following
from hushcast_directory.several import ReadAgreed, SeveralDirectories
from hushcast_directory.single import SingleDirectory
from hushcast_directory.sources import Source
from hushcast_directory.trust import Trust
from hushcast_protocol.authorities.answers import roster_of
from hushcast_protocol.authorities.members import Member
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.handovers import CheckRoster
from hushcast_protocol.base.roster import Network, check_roster
from hushcast_protocol.base.wire import PublicKey
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.store import Store
from hushcast_runtime.transports.base import Transport


class Checks(NamedTuple):
    """How rosters are checked; simulations check each once for all daemons."""

    roster: CheckRoster = check_roster
    agreed: ReadAgreed = roster_of


CHECKS = Checks()


@dataclass(frozen=True)
class Pinned:
    """The directories that a configuration names, and how many of them sign a head."""

    members: tuple[Member, ...]
    quorum: int = 1

    @classmethod
    def alone(cls, address: Address, key: PublicKey) -> Self:
        """Return a single directory."""
        return cls((Member(key, address),))


def open_source(
    env: Environment,
    transport: Transport,
    store: Store,
    network: Network,
    pinned: Pinned,
    counters: Counters,
    checks: Checks = CHECKS,
) -> Source:
    """Return what a daemon's rosters come from."""

    def reach(member: Member) -> DirectoryClient:
        return DirectoryClient(env, transport, network.id, Address(member.address), member)

    following = Following(network, pinned.members, pinned.quorum)
    several = SeveralDirectories(env, store, network, following, reach, counters, checks.agreed)
    if len(pinned.members) > 1:
        return several
    alone = pinned.members[0]
    trust = Trust(network, alone.key)
    client = DirectoryClient(env, transport, network.id, Address(alone.address), trust)
    return SingleDirectory(env, store, trust, client, several, checks.roster)
