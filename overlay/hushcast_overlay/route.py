"""A route: what the overlay holds for one interest, in memory and as it lies in the store.

On days that are not cut into shards it has one mailbox, which lasts. On a day that is cut it has one of that
day alone: what shows when a mailbox is there shows that for a day only.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec
import trio

from hushcast_overlay.coverage import Coverage
from hushcast_protocol.base.addresses import Address, parse_address
from hushcast_protocol.base.secrets import LeaseSecret, Seed
from hushcast_protocol.base.wire import RelayId, encode
from hushcast_protocol.overlay.installations import Installation, ListedRoot, MailboxRoot
from hushcast_protocol.overlay.tree import Tree
from hushcast_runtime.carrier import Wanted
from hushcast_runtime.environment import Environment
from hushcast_runtime.store import Change, Store, record_reader

EARLIEST_RENEWAL, LATEST_RENEWAL = 0.5, 0.25  # shares of a day before its end

_MAILBOX, _DAILY_MAILBOX, _INSTALLATION = "mailbox", "daily-mailbox", "installation"
_NAME = 16  # bytes of the name of what is wanted


@dataclass(eq=False)
class Planned:
    """One tree's installation for one day, and which of its relays have not confirmed it."""

    name: bytes  # of what is wanted
    number: int  # of the tree, from 0
    installation: Installation
    unconfirmed: set[RelayId]
    told_again: set[RelayId] = field(default_factory=set)
    """Relays that were told once more because probes are lost there: they may have lost their lease."""

    @property
    def key(self) -> tuple[int, int]:
        """Day and number."""
        return self.installation.day, self.number

    def leads_to(self, mailbox: Seed) -> bool:
        """Tell whether it brings messages to the mailbox with this seed."""
        root = self.installation.root
        return isinstance(root, MailboxRoot) and root.seed == mailbox

    @property
    def nodes(self) -> int:
        """The number of relays that confirmed."""
        return len(self.installation.tree.parents) - len(self.unconfirmed)

    def confirm(self, relays: set[RelayId]) -> None:
        """Note that relays have installed what they were told."""
        self.unconfirmed -= relays

    def reseat(self, tree: Tree, changed: set[RelayId]) -> None:
        """Take a mended tree; the relays whose seat changed have to confirm anew."""
        self.installation = dataclasses.replace(self.installation, tree=tree)
        self.unconfirmed = (self.unconfirmed & tree.parents.keys()) | changed

    def tell_again(self, suspects: Iterable[RelayId]) -> None:
        """Count relays that lose probes among those that have not confirmed, each once."""
        new = self.installation.tree.parents.keys() & set(suspects) - self.told_again
        self.told_again |= new
        self.unconfirmed |= new


@dataclass(eq=False)
class Withdrawal:
    """The installation of a route that ended, and which of its relays have not confirmed that they forgot."""

    name: bytes  # of what was wanted
    number: int  # of the tree
    installation: Installation
    left: set[RelayId]
    is_under_way: bool = False
    is_done: bool = False


@dataclass(eq=False)
class RouteMailbox:
    """One address at which messages arrive for a route, and what its next one depends on."""

    seed: Seed
    renewal: float
    """Share of a day before its end at which the next day is installed: drawn, so that each has its own."""
    day: int | None = None
    """The one day that it is for; `None`: all days that are not cut."""
    address: Address | None = None
    published: trio.Event = field(default_factory=trio.Event)
    """Set when relays can find it."""
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    """What serves it."""
    is_begun: bool = False
    """Whether it is served, or being opened."""
    is_fresh: bool = False
    """Whether it was drawn in this life of the daemon: while no tree leads to it, no relay ever heard of it."""

    @classmethod
    def draw(cls, env: Environment, seed: Seed | None = None) -> RouteMailbox:
        """Draw one that no relay has heard of; a spare has its seed already."""
        seed = seed or Seed.draw(env.randomness)
        return cls(seed, env.uniform(LATEST_RENEWAL, EARLIEST_RENEWAL), is_fresh=True)


@dataclass(eq=False)
class Route:
    """Mailboxes and the trees that lead to them, for one interest."""

    wanted: Wanted
    lasting: RouteMailbox | None = None
    """The mailbox of all days that are not cut."""
    daily: dict[int, RouteMailbox] = field(default_factory=dict)
    """Those of days that are cut."""
    planned: dict[tuple[int, int], Planned] = field(default_factory=dict)
    """By day, and number of the tree."""
    coverage: Coverage = field(default_factory=Coverage)
    stirred: trio.Event = field(default_factory=trio.Event)
    """Set when a mailbox is published: its trees need not wait any more."""
    ready: trio.Event = field(default_factory=trio.Event)
    """Set when messages of the running day reach it."""
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    withdrawals: list[Withdrawal] = field(default_factory=list)
    """What is left to withdraw, once it has ended."""

    @property
    def topic(self) -> str:
        """The topic's name, for traces."""
        return self.wanted.interest.topic.name

    @property
    def mailboxes(self) -> list[RouteMailbox]:
        """All its mailboxes."""
        return [*([self.lasting] if self.lasting is not None else []), *self.daily.values()]

    def mailbox(self, day: int) -> RouteMailbox | None:
        """Return the mailbox of a day: one of that day alone, or the lasting one."""
        return self.daily.get(day, self.lasting)

    def take(self, mailbox: RouteMailbox) -> None:
        """Hold a mailbox for the day or the days that it is for."""
        if mailbox.day is None:
            self.lasting = mailbox
        else:
            self.daily[mailbox.day] = mailbox

    def leave(self, mailbox: RouteMailbox) -> None:
        """Hold a mailbox no more."""
        if mailbox.day is None:
            self.lasting = None
        else:
            del self.daily[mailbox.day]

    def stop(self) -> None:
        """Hand in nothing more, mend and tell nothing more."""
        self.scope.cancel()
        for mailbox in self.mailboxes:
            mailbox.scope.cancel()

    def on(self, day: int) -> list[Planned]:
        """Return what is installed for a day."""
        return [planned for planned in self.planned.values() if planned.installation.day == day]

    def towards(self, mailbox: Seed) -> list[Planned]:
        """Return what is installed and leads to the mailbox with this seed."""
        return [planned for planned in self.planned.values() if planned.leads_to(mailbox)]

    def is_top(self, mailbox: Seed, relay: RelayId) -> bool:
        """Tell whether a relay stands directly under a mailbox in one of the trees that lead to it."""
        return any(
            planned.installation.tree.parents.get(relay, relay) is None for planned in self.towards(mailbox)
        )


class _StoredMailbox(msgspec.Struct, frozen=True, array_like=True):
    """What a route needs to have the same mailbox after a restart."""

    seed: bytes
    renewal: float
    address: str | None


class _StoredInstallation(msgspec.Struct, frozen=True, array_like=True):
    day: int
    root_relay: bytes | None
    root_seed: bytes | None
    root_address: str | None
    parents: list[tuple[bytes, bytes | None]]
    trunk: bytes
    entries: tuple[bytes, ...]
    secret: bytes
    missing: list[bytes]
    withdrawing: bool


_decode_mailbox = record_reader(_StoredMailbox, "mailbox")
_decode_installation = record_reader(_StoredInstallation, "installation")


class RouteRecords:
    """Mailboxes and installations in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def keep(self, route: Route, mailbox: RouteMailbox) -> None:
        """Write one of a route's mailboxes; durable on return."""
        await self._store.write(_kept(route.wanted.name, mailbox))

    async def keep_for_day(self, route: Route, mailbox: RouteMailbox) -> None:
        """Write a mailbox of one day that was to be the lasting one; durable on return."""
        name = route.wanted.name
        await self._store.write(Change(_MAILBOX, name, None), _kept(name, mailbox))

    async def drop(self, route: Route, mailbox: RouteMailbox) -> None:
        """Delete one of a route's mailboxes; durable on return."""
        await self._store.write(_deleted(route.wanted.name, mailbox))

    async def keep_installation(self, planned: Planned) -> None:
        """Write an installation and who confirmed it; durable on return."""
        await self._store.write(_change(planned, planned.unconfirmed))

    async def keep_withdrawal(self, withdrawal: Withdrawal) -> None:
        """Write a withdrawal and who confirmed it; durable on return."""
        await self._store.write(_change(withdrawal, withdrawal.left))

    async def end(
        self, name: bytes, mailboxes: Iterable[RouteMailbox], planned: Iterable[Planned]
    ) -> list[Withdrawal]:
        """Delete mailboxes and turn the installations towards them into withdrawals, all in one commit."""
        ended = [
            Withdrawal(name, held.number, held.installation, set(held.installation.tree.parents))
            for held in planned
        ]
        deleted = [_deleted(name, mailbox) for mailbox in mailboxes]
        await self._store.write(*deleted, *(_change(one, one.left) for one in ended))
        return ended

    def forget(self, planned: Planned | Withdrawal) -> None:
        """Delete an installation that lapsed or was withdrawn everywhere."""
        self._store.write_soon(Change(_INSTALLATION, _key(planned), None))

    async def load_mailboxes(self) -> dict[bytes, list[RouteMailbox]]:
        """Return the mailboxes kept, by the name of what is wanted."""
        found: dict[bytes, list[RouteMailbox]] = {}
        for kind in (_MAILBOX, _DAILY_MAILBOX):
            for key, value in await self._store.scan(kind):
                name, day = key[:_NAME], int.from_bytes(key[_NAME:], "big") if kind == _DAILY_MAILBOX else None
                stored = _decode_mailbox(value)
                address = Address(stored.address) if stored.address is not None else None
                found.setdefault(name, []).append(
                    RouteMailbox(Seed(stored.seed), stored.renewal, day, address)
                )
        return found

    async def load_installations(self) -> tuple[list[Planned], list[Withdrawal]]:
        """Return the installations kept, and the withdrawals."""
        installed: list[Planned] = []
        ended: list[Withdrawal] = []
        for key, value in await self._store.scan(_INSTALLATION):
            stored = _decode_installation(value)
            installation = Installation(
                stored.day,
                _root(stored),
                Tree(dict(stored.parents)),
                stored.trunk,
                stored.entries,
                LeaseSecret(stored.secret),
            )
            name, number, left = key[:_NAME], key[-1], set(stored.missing)
            if stored.withdrawing:
                ended.append(Withdrawal(name, number, installation, left))
            else:
                installed.append(Planned(name, number, installation, left))
        return installed, ended


def mailbox_record(name: bytes, seed: Seed, renewal: float, address: Address | None) -> Change:
    """Return the record of a lasting mailbox."""
    return Change(_MAILBOX, name, encode(_StoredMailbox(seed.reveal(), renewal, address)))


def _kept(name: bytes, mailbox: RouteMailbox) -> Change:
    record = mailbox_record(name, mailbox.seed, mailbox.renewal, mailbox.address)
    return record if mailbox.day is None else Change(_DAILY_MAILBOX, _of_day(name, mailbox.day), record.value)


def _deleted(name: bytes, mailbox: RouteMailbox) -> Change:
    if mailbox.day is None:
        return Change(_MAILBOX, name, None)
    return Change(_DAILY_MAILBOX, _of_day(name, mailbox.day), None)


def _of_day(name: bytes, day: int) -> bytes:
    return name + day.to_bytes(8, "big")


def _change(planned: Planned | Withdrawal, missing: set[RelayId]) -> Change:
    installation = planned.installation
    root = installation.root
    stored = _StoredInstallation(
        installation.day,
        root.relay if isinstance(root, ListedRoot) else None,
        root.seed.reveal() if isinstance(root, MailboxRoot) else None,
        root.address if isinstance(root, MailboxRoot) else None,
        list(installation.tree.parents.items()),
        installation.trunk,
        installation.entries,
        installation.secret.reveal(),
        sorted(missing),
        isinstance(planned, Withdrawal),
    )
    return Change(_INSTALLATION, _key(planned), encode(stored))


def _root(stored: _StoredInstallation) -> MailboxRoot | ListedRoot:
    if stored.root_relay is not None:
        return ListedRoot(stored.root_relay)
    assert stored.root_seed is not None
    assert stored.root_address is not None
    return MailboxRoot(Seed(stored.root_seed), parse_address(stored.root_address))


def _key(planned: Planned | Withdrawal) -> bytes:
    return _of_day(planned.name, planned.installation.day) + bytes([planned.number])
