"""The directories that a configuration names, made a source of rosters: one, or several from the start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

from hushcast_directory.client.directory_client import DirectoryClient
from hushcast_directory.client.roster_source import RosterSource
from hushcast_directory.client.several_directories import ReadAgreed, SeveralDirectories
from hushcast_directory.client.single_directory import SingleDirectory
from hushcast_directory.client.trust import Trust
from hushcast_directory.client.trusted_authorities import TrustedAuthorities
from hushcast_protocol.authorities.authority_set import AuthorityContact
from hushcast_protocol.authorities.head_answers import roster_of
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.key_handovers import CheckRoster
from hushcast_protocol.base.roster import Network, check_roster
from hushcast_protocol.base.versions import wires
from hushcast_protocol.base.wire import PublicKey
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.storage.store import Store
from hushcast_runtime.transports.base import Transport


class RosterChecks(NamedTuple):
    """How rosters are checked; simulations check each once for all daemons."""

    roster: CheckRoster = check_roster
    agreed: ReadAgreed = roster_of


CHECKS = RosterChecks()


@dataclass(frozen=True)
class PinnedDirectories:
    """The directories that a configuration names, and how many of them sign a head."""

    members: tuple[AuthorityContact, ...]
    quorum: int = 1

    @classmethod
    def alone(cls, address: Address, key: PublicKey) -> Self:
        """Return a single directory."""
        return cls((AuthorityContact(key, address),))


def open_source(
    env: Environment,
    transport: Transport,
    store: Store,
    network: Network,
    pinned: PinnedDirectories,
    counters: Counters,
    checks: RosterChecks = CHECKS,
) -> RosterSource:
    """Return what a daemon's rosters come from."""

    def spoken() -> int:
        """Return in which wire directories are asked: that of the network, or the newest before any head."""
        wire = following.wire(network.calendar.epoch(env.now()))
        return wires.spoken().highest if wire is None else wire.now

    def reach(member: AuthorityContact) -> DirectoryClient:
        return DirectoryClient(env, transport, network.id, Address(member.address), member, spoken)

    following = TrustedAuthorities(network, pinned.members, pinned.quorum)
    several = SeveralDirectories(env, store, network, following, reach, counters, checks.agreed)
    if len(pinned.members) > 1:
        return several
    alone = pinned.members[0]
    trust = Trust(network, alone.key)
    client = DirectoryClient(env, transport, network.id, Address(alone.address), trust, spoken)
    return SingleDirectory(env, store, trust, client, several, checks.roster)
