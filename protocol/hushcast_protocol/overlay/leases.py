"""Leases: the routes that one subscription installed at one relay, withdrawals and tombstones."""

from __future__ import annotations

from collections import Counter as Multiset
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Annotated

import msgspec

from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_protocol.base.crypto.proof_of_work import NEEDED_FROM
from hushcast_protocol.base.crypto.secrets import LeaseSecret
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.base.wire import Bytes16, Counter, RelayId, Wire
from hushcast_protocol.content.bloom import CAPACITY
from hushcast_protocol.content.hops import Hop
from hushcast_protocol.content.routing_table import RoutingTable
from hushcast_protocol.overlay.hops import host_hop, is_box, key_of, relay_hop
from hushcast_protocol.overlay.host_cards import HostCard, check_host_card
from hushcast_protocol.overlay.moved_leases import MovedLeases

MAX_LEASES = 20_000  # held by one relay: 10,000 subscriptions on two days; some 40 MB
MAX_ELEMENTS = 1024  # in one lease: a filter (`bloom.CAPACITY`) holds two of the largest
ELEMENTS_A_LEASE = 32  # of a lease of the usual size; a larger one counts as several, in its stamp, too
MAX_ELEMENTS_HELD = ELEMENTS_A_LEASE * MAX_LEASES  # in all together; 620 MB if each has its own next hop
MAX_TOMBSTONES = 20_000  # of lease ids never seen; 40,000 together with leases held and withdrawn
MAX_BOX_LEASES = 16  # held for one box: a tree has one a day, and there are two days at most
_AT_ONCE = 1024  # leases that expire in one piece: some 3 ms, and 1 ms of looking for them
assert MAX_ELEMENTS <= CAPACITY

Elements = Annotated[tuple[Bytes16, ...], msgspec.Meta(min_length=1, max_length=MAX_ELEMENTS)]


class ToRelay(Wire, frozen=True, tag="relay"):
    """A next hop that the roster lists."""

    relay: RelayId


class ToHost(Wire, frozen=True, tag="host"):
    """A next hop that is the host of a box, by its card: messages wait for it and never go around."""

    card: HostCard


class ToListedHost(Wire, frozen=True, tag="listed"):
    """A next hop that is the host of a box and that the roster lists: as `ToHost`, by an owner without card.

    A card comes over a link to the host: one under cover has none, nor has one whose link has just opened.
    """

    relay: RelayId


class Install(Wire, frozen=True, tag="install"):
    """The instruction "route these elements to this next hop" for one day, under a lease id.

    Where the next hop is lost, a message whose trunk has this `mark` enters the tree again at another relay,
    by the token `bypass`.
    """

    lease: Bytes16
    day: Counter
    next_hop: ToRelay | ToHost | ToListedHost
    elements: Elements
    mark: Bytes16
    bypass: Bytes16


class Withdraw(Wire, frozen=True, tag="withdraw"):
    """Forget the lease whose id is the hash of `word`, and refuse it from now on."""

    word: Bytes16


Instruction = Install | Withdraw


def lease_word(secret: LeaseSecret, relay: RelayId) -> bytes:
    """Return the word (16 bytes) of an installation's lease at `relay`; no other relay can know it."""
    return digest(Domain.LEASE_WORD, relay, key=secret.reveal(), size=LABEL)


def lease_id(word: bytes) -> bytes:
    """Return the id (16 bytes) of the lease that `word` withdraws."""
    return digest(Domain.LEASE_ID, word, size=LABEL)


def lease_mark(trunk: bytes, relay: RelayId) -> bytes:
    """Return the mark (16 bytes) by which `relay` finds the leases that a message with this trunk follows."""
    return digest(Domain.MARK, trunk, relay, size=LABEL)


def bypass_token(secret: LeaseSecret) -> bytes:
    """Return the token (16 bytes) by which detours enter the tree of one installation, and no other."""
    return digest(Domain.BYPASS, key=secret.reveal(), size=LABEL)


def units(elements: int) -> int:
    """Return how many leases of the usual size a lease with so many elements counts as (1 to 32)."""
    return max(1, -(-elements // ELEMENTS_A_LEASE))


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease as held by a relay."""

    id: bytes
    day: int
    hop: Hop
    address: Address | None  # of a host; a relay's is in the roster, and a box is here
    elements: tuple[bytes, ...]
    mark: bytes
    bypass: bytes
    before: Hop | None = None  # the next hop that it had until it was installed anew
    children: tuple[RelayId, ...] = ()  # who is let in to bring messages for a box


class LeaseBook:
    """The leases of one relay and, kept in step with them, its routing table for each day."""

    def __init__(self, relay: RelayId, calendar: Calendar, filter_key: bytes) -> None:
        self._relay = relay
        self._calendar = calendar
        self._filter_key = filter_key
        self._leases: dict[bytes, Lease] = {}
        self._restored: set[bytes] = set()  # ids of those that nobody has installed since a restart
        # By next hop, by day and mark, by id: each may have thousands, and each message asks.
        self._by_hop: dict[Hop, dict[tuple[int, bytes], dict[bytes, Lease]]] = {}
        # By lease, of those with a card alone: who names a host without one hides no address.
        self._addresses: dict[Hop, dict[bytes, Address]] = {}
        self.moves = MovedLeases()
        """Leases that have another next hop now, and that not all has followed yet; to be read."""
        self._tombstones: dict[bytes, int] = {}
        self._tables: dict[int, RoutingTable] = {}
        self.changes = 0
        """How often tables were changed: until they are again, what was looked up is found again."""
        self._places: dict[bytes, int] = {}
        self._elements = 0
        self._children: Multiset[RelayId] = Multiset()

    def __len__(self) -> int:
        """Return the number of leases held."""
        return len(self._leases)

    def __contains__(self, lease: bytes) -> bool:
        return lease in self._leases

    def get(self, lease: bytes) -> Lease | None:
        """Return a lease held, by its id."""
        return self._leases.get(lease)

    def leases(self) -> list[Lease]:
        """Return the leases held."""
        return list(self._leases.values())

    def tombstones(self) -> dict[bytes, int]:
        """Return withdrawn lease ids with the day after which they may be forgotten."""
        return dict(self._tombstones)

    def table(self, day: int) -> RoutingTable | None:
        """Return the routing table of a day, if anything is installed for it."""
        return self._tables.get(day)

    def fullness(self) -> float:
        """Return the share (0 to 1) taken of the scarcest resource: leases, elements or tombstones."""
        held, most = len(self._leases), MAX_LEASES + MAX_TOMBSTONES
        both = held + len(self._tombstones)
        return max(held / MAX_LEASES, self._elements / MAX_ELEMENTS_HELD, both / most)

    def install(self, install: Install, now: float, paid: bool = False) -> Lease:
        """Take a lease, `paid` if a stamp for it holds; return it, the one that is held if it is the same.

        Installing a lease again replaces it: so an instruction is idempotent, and a tree may grow. One that
        was read back is another: the restart may have come before what it brings. Raises `Refusal` ("day",
        "quota", "withdrawn") or a `PeerError`.
        """
        self._check_timely(install.lease, install.day, now)
        held, before, address = self._leases.get(install.lease), None, None
        if isinstance(install.next_hop, ToHost):
            host, address = check_host_card(install.next_hop.card)
            hop = host_hop(host)
        elif isinstance(install.next_hop, ToListedHost):
            hop = host_hop(install.next_hop.relay)
            if held is not None and held.hop == hop:
                address = held.address  # of the card that may have come first
        else:
            hop = relay_hop(install.next_hop.relay)
        if key_of(hop) == self._relay:
            raise DecodeError("an instruction routes a relay to itself")
        if held is not None:
            before = held.hop if held.hop != hop else held.before
        once = tuple(dict.fromkeys(install.elements))
        made = Lease(install.lease, install.day, hop, address, once, install.mark, install.bypass, before)
        return self._take(made, paid)

    def hold(self, lease: Lease, now: float, paid: bool = False) -> Lease:
        """Have elements lead to a box of this relay's; return the lease, as it is held.

        It is bounded and refused as `install` is, and replaced when it is held again; a box has
        `MAX_BOX_LEASES` at most. Who knows the id of another's lease gets a `DecodeError`.
        """
        self._check_timely(lease.id, lease.day, now)
        if lease.id not in self._leases and len(self.held_for(lease.hop)) >= MAX_BOX_LEASES:
            raise Refusal("quota")
        return self._take(lease, paid)

    def is_child(self, relay: RelayId) -> bool:
        """Tell whether an owner named a relay that is to be let in."""
        return relay in self._children

    def held_for(self, hop: Hop) -> list[bytes]:
        """Return the ids of all leases whose next hop is `hop`."""
        return [lease for held in self._by_hop.get(hop, {}).values() for lease in held]

    def _check_timely(self, lease: bytes, day: int, now: float) -> None:
        if day not in self._calendar.installable_days(now):
            raise Refusal("day")
        if lease in self._tombstones:
            raise Refusal("withdrawn")

    def _take(self, lease: Lease, paid: bool) -> Lease:
        held = self._leases.get(lease.id)
        if held is not None and held.hop != lease.hop and (is_box(held.hop) or is_box(lease.hop)):
            raise DecodeError("a lease is held for another box")
        if held == lease and lease.id not in self._restored:
            return held
        if not self._has_room(held, lease, paid):
            raise Refusal("quota")
        self._replace(held, lease)
        return lease

    def withdraw(self, withdraw: Withdraw, now: float, paid: bool = False) -> tuple[bytes, int]:
        """Forget a lease, `paid` if a stamp holds; return its id and the day with which its tombstone lapses.

        A lease never seen leaves one, too: its install may still be in flight. Raises `Refusal` ("quota").
        """
        lease = lease_id(withdraw.word)
        held = self._leases.get(lease)
        if held is not None:
            self._drop(held)
        elif lease not in self._tombstones and len(self._tombstones) >= MAX_TOMBSTONES * _share(paid):
            raise Refusal("quota")
        day = held.day if held is not None else self._calendar.day(now) + 1
        self._tombstones[lease] = day
        return lease, day

    def restore(self, lease: Lease) -> None:
        """Take back a lease that this relay held before a restart."""
        self._put(lease)
        self._restored.add(lease.id)

    def restore_tombstone(self, lease: bytes, day: int) -> None:
        """Take back a tombstone that this relay held before a restart."""
        self._tombstones[lease] = day

    def lapse(self, now: float) -> Iterator[list[bytes]]:
        """Expire leases, tombstones and tables of past days, and yield the ids of what was removed.

        It goes piece by piece of some milliseconds each, between which others have their turn.
        """
        over = {day for day in self._tables if self._calendar.lapse(day) <= now}
        while gone := _some(lease.id for lease in self._leases.values() if lease.day in over):
            for lease in gone:
                self._forget(self._leases[lease])
            yield gone
        self.changes += len(over)
        for table in [self._tables.pop(day) for day in over]:
            while table.shrink():
                yield []
        lapsed = {day for day in set(self._tombstones.values()) if self._calendar.lapse(day) <= now}
        while gone := _some(lease for lease, day in self._tombstones.items() if day in lapsed):
            for lease in gone:
                del self._tombstones[lease]
            yield gone

    def address_of(self, hop: Hop) -> Address | None:
        """Return where a host says that it is reached, if a lease here sends to it."""
        return next(iter(self._addresses.get(hop, {}).values()), None)

    def next_hops(self, days: Container[int] | None = None) -> list[Hop]:
        """Return the next hops of all leases, or of those of some days."""
        if days is None:
            return list(self._by_hop)
        return [hop for hop, held in self._by_hop.items() if any(day in days for day, _ in held)]

    def followed(self, day: int, hop: Hop, trunk: bytes, most: int | None = None) -> list[Lease]:
        """Return the leases by which messages with this trunk go to `hop` on a day, the first so many."""
        held = self._by_hop.get(hop, {}).get((day, lease_mark(trunk, self._relay)), {})
        return list(islice(held.values(), most))

    def moved(self, day: int, hop: Hop, trunk: bytes) -> list[Hop]:
        """Return the new next hops of leases that sent messages with this trunk to `hop` before."""
        return self.moves.ways((day, hop, lease_mark(trunk, self._relay)))

    def settle(self, lease: bytes, before: Hop) -> Lease | None:
        """Note that all that waited for the next hop of before has followed a lease; return it if it had."""
        held = self._leases.get(lease)
        if held is None or held.before != before:
            return None
        self.moves.remove(lease, (held.day, before, held.mark), held.hop)
        made = self._leases[lease] = replace(held, before=None)
        self._by_hop[held.hop][held.day, held.mark][lease] = made
        return made

    def prune(self, lease: Lease) -> bool:
        """Drop a lease whose next hop has no such route, if it is held still; it may be installed again."""
        if self._leases.get(lease.id) is not lease:
            return False
        self._drop(lease)
        return True

    def _has_room(self, held: Lease | None, lease: Lease, paid: bool) -> bool:
        before = len(held.elements) if held is not None else 0
        if held is not None and units(len(lease.elements)) <= units(before):
            paid = True  # a lease that counts as no more than before needs no stamp
        share = _share(paid)
        if self._elements + len(lease.elements) - before > MAX_ELEMENTS_HELD * share:
            return False
        if held is not None:
            return True
        # A lease held can always be withdrawn, so room for its tombstone is reserved when it is installed.
        both = len(self._leases) + len(self._tombstones)
        return len(self._leases) < MAX_LEASES * share and both < (MAX_LEASES + MAX_TOMBSTONES) * share

    def _replace(self, held: Lease | None, lease: Lease) -> None:
        if held is not None:
            self._drop(held)
        try:
            self._put(lease)
        except Refusal:
            if held is not None:
                self._put(held)
            raise

    def _put(self, lease: Lease) -> None:
        self.changes += 1
        if (table := self._tables.get(lease.day)) is None:
            table = self._tables[lease.day] = RoutingTable(self._filter_key)
        self._places[lease.id] = table.add(lease.hop, lease.elements)
        self._leases[lease.id] = lease
        beside = self._by_hop.setdefault(lease.hop, {}).setdefault((lease.day, lease.mark), {})
        beside[lease.id] = lease
        if lease.address is not None:
            self._addresses.setdefault(lease.hop, {})[lease.id] = lease.address
        if lease.before is not None:
            self.moves.add(lease.id, (lease.day, lease.before, lease.mark), lease.hop)
        self._elements += len(lease.elements)
        self._children.update(lease.children)

    def _drop(self, lease: Lease) -> None:
        self.changes += 1
        self._tables[lease.day].remove(self._places[lease.id], lease.elements)
        self._forget(lease)

    def _forget(self, lease: Lease) -> None:
        del self._leases[lease.id], self._places[lease.id]
        self._restored.discard(lease.id)
        self._elements -= len(lease.elements)
        for child in lease.children:
            self._children[child] -= 1
            if not self._children[child]:
                del self._children[child]
        if lease.address is not None:
            del self._addresses[lease.hop][lease.id]
            if not self._addresses[lease.hop]:
                del self._addresses[lease.hop]
        of_hop, alike = self._by_hop[lease.hop], (lease.day, lease.mark)
        del of_hop[alike][lease.id]
        if not of_hop[alike]:
            del of_hop[alike]
        if not of_hop:
            del self._by_hop[lease.hop]
        if lease.before is not None:
            self.moves.remove(lease.id, (lease.day, lease.before, lease.mark), lease.hop)


def _some(ids: Iterable[bytes]) -> list[bytes]:
    return list(islice(ids, _AT_ONCE))


def _share(paid: bool) -> float:
    return 1.0 if paid else NEEDED_FROM
