"""A route as it lies in the store: its mailboxes, its box, its installations and what is left to withdraw.

A mailbox of one day has a record of another kind than the lasting one: an older program passes it by.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from hushcast_overlay.routes.box_records import deleted_box, kept_box, load_boxes
from hushcast_overlay.routes.route import OverlayRoute, RouteEnd, RouteMailbox, TreeInstallation, Withdrawal
from hushcast_overlay.routes.route_box import RouteBox
from hushcast_protocol.base.addresses import Address, parse_address
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.secrets import LeaseSecret, Seed
from hushcast_protocol.base.wire import Bytes16, Bytes32, Counter, RelayId, encode
from hushcast_protocol.overlay.installations import (
    HostRoot,
    Installation,
    InstallationRoot,
    ListedRoot,
    MailboxRoot,
)
from hushcast_protocol.overlay.tree import Tree
from hushcast_runtime.storage.recovery import number, restore, sized
from hushcast_runtime.storage.store import Change, Store, record_reader

_MAILBOX = RecordKind(
    "mailbox",
    StateOwner.OVERLAY_DAEMON,
    holds="seed, address and moment of renewal of a mailbox for days that are not cut",
    lifetime="until unsubscribed, or the last such day has lapsed",
)
_DAILY_MAILBOX = RecordKind(
    "daily-mailbox",
    StateOwner.OVERLAY_DAEMON,
    holds="those of a mailbox for one day that is cut into [shards](shards.md)",
    lifetime="until unsubscribed, or its day has lapsed",
)
_INSTALLATION = RecordKind(
    "installation",
    StateOwner.OVERLAY_DAEMON,
    holds="trees, secrets of their leases, which relays confirmed",
    lifetime="until lapsed or withdrawn",
)
_NAME = 16  # bytes of the name of what is wanted


class _StoredMailbox(msgspec.Struct, frozen=True, array_like=True):
    """What a route needs to have the same mailbox after a restart."""

    seed: Bytes32
    renewal: float
    address: str | None


class _StoredInstallation(msgspec.Struct, frozen=True, array_like=True):
    day: Counter
    root_relay: RelayId | None
    root_seed: bytes | None
    root_address: str | None
    parents: list[tuple[RelayId, RelayId | None]]
    trunk: Bytes16
    entries: tuple[Bytes16, ...]
    secret: bytes
    missing: list[RelayId]
    withdrawing: bool
    copy: int = 0
    former: list[RelayId] = []


_decode_mailbox = record_reader(_StoredMailbox, "mailbox")
_decode_installation = record_reader(_StoredInstallation, "installation")


class RouteRecords:
    """Mailboxes, boxes and installations in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def keep(self, route: OverlayRoute, mailbox: RouteMailbox) -> None:
        """Write one of a route's mailboxes; durable on return."""
        await self._store.write(_kept(route.wanted.name, mailbox))

    async def keep_for_day(self, route: OverlayRoute, mailbox: RouteMailbox) -> None:
        """Write a mailbox of one day that was to be the lasting one; durable on return."""
        name = route.wanted.name
        await self._store.write(Change(_MAILBOX, name, None), _kept(name, mailbox))

    async def drop(self, route: OverlayRoute, mailbox: RouteMailbox) -> None:
        """Delete one of a route's mailboxes; durable on return."""
        await self._store.write(_deleted(route.wanted.name, mailbox))

    async def keep_box(self, name: bytes, box: RouteBox) -> None:
        """Write a box, for what is wanted under a name; durable on return."""
        await self._store.write(kept_box(name, box))

    async def drop_box(self, name: bytes, box: RouteBox) -> None:
        """Delete a box; durable on return."""
        await self._store.write(deleted_box(name, box))

    async def load_boxes(self) -> list[tuple[bytes, RouteBox]]:
        """Return the boxes kept, each with the name of what is wanted, or was."""
        return await load_boxes(self._store)

    async def keep_installation(self, planned: TreeInstallation) -> None:
        """Write an installation and who confirmed it; durable on return."""
        await self._store.write(_change(planned, planned.unconfirmed))

    async def keep_withdrawal(self, withdrawal: Withdrawal) -> None:
        """Write a withdrawal and who confirmed it; durable on return."""
        await self._store.write(_change(withdrawal, withdrawal.left))

    async def end(
        self, name: bytes, ends: Iterable[RouteEnd], planned: Iterable[TreeInstallation]
    ) -> list[Withdrawal]:
        """Delete mailboxes, end a box, and turn the installations into withdrawals, all in one commit."""
        ended = [
            Withdrawal(name, held.number, held.installation, set(held.installation.tree.parents))
            for held in planned
        ]
        ending = [kept_box(name, end) if isinstance(end, RouteBox) else _deleted(name, end) for end in ends]
        await self._store.write(*ending, *(_change(one, one.left) for one in ended))
        return ended

    def forget(self, planned: TreeInstallation | Withdrawal) -> None:
        """Delete an installation that lapsed or was withdrawn everywhere."""
        self._store.write_soon(Change(_INSTALLATION, _key(planned), None))

    async def load_mailboxes(self) -> dict[bytes, list[RouteMailbox]]:
        """Return the mailboxes kept, by the name of what is wanted."""
        found: dict[bytes, list[RouteMailbox]] = {}

        def take(name: bytes, day: int | None, value: bytes) -> None:
            stored = _decode_mailbox(value)
            address = parse_address(stored.address) if stored.address is not None else None
            mailbox = RouteMailbox(Seed(stored.seed), stored.renewal, day, address)
            found.setdefault(sized(name, _NAME), []).append(mailbox)

        await restore(self._store, _MAILBOX, lambda name, value: take(name, None, value))
        await restore(
            self._store, _DAILY_MAILBOX, lambda key, value: take(key[:_NAME], number(key[_NAME:]), value)
        )
        return found

    async def load_installations(self) -> tuple[list[TreeInstallation], list[Withdrawal]]:
        """Return the installations kept, and the withdrawals."""
        installed: list[TreeInstallation] = []
        ended: list[Withdrawal] = []

        def take(key: bytes, value: bytes) -> None:
            stored = _decode_installation(value)
            installation = Installation(
                stored.day,
                _root(stored),
                _tree(stored),
                stored.trunk,
                stored.entries,
                LeaseSecret(stored.secret),
                stored.copy,
            )
            name, place, left = key[:_NAME], key[-1], set(stored.missing)
            if key != _of_day(name, stored.day) + bytes([place]):
                raise DecodeError("an installation is kept under another's name")
            if stored.withdrawing:
                ended.append(Withdrawal(name, place, installation, left))
            else:
                former = dict.fromkeys(stored.former)
                installed.append(TreeInstallation(name, place, installation, left, former=former))

        await restore(self._store, _INSTALLATION, take)
        return installed, ended


def mailbox_record(name: bytes, seed: Seed, renewal: float, address: Address | None) -> Change:
    """Return the record of a lasting mailbox."""
    return Change(_MAILBOX, name, encode(_StoredMailbox(seed.reveal(), renewal, address)))


def _kept(name: bytes, mailbox: RouteMailbox) -> Change:
    stored = _StoredMailbox(mailbox.seed.reveal(), mailbox.renewal, mailbox.address)
    return Change(*_place(name, mailbox), encode(stored))


def _deleted(name: bytes, mailbox: RouteMailbox) -> Change:
    return Change(*_place(name, mailbox), None)


def _place(name: bytes, mailbox: RouteMailbox) -> tuple[RecordKind, bytes]:
    return (_MAILBOX, name) if mailbox.day is None else (_DAILY_MAILBOX, _of_day(name, mailbox.day))


def _of_day(name: bytes, day: int) -> bytes:
    return name + day.to_bytes(8, "big")


def _change(planned: TreeInstallation | Withdrawal, missing: set[RelayId]) -> Change:
    installation = planned.installation
    root = installation.root
    stored = _StoredInstallation(
        installation.day,
        root.relay if isinstance(root, ListedRoot | HostRoot) else None,
        _seed(root),
        root.address if isinstance(root, MailboxRoot) else None,
        list(installation.tree.parents.items()),
        installation.trunk,
        installation.entries,
        installation.secret.reveal(),
        sorted(missing),
        isinstance(planned, Withdrawal),
        installation.copy,
        list(planned.former) if isinstance(planned, TreeInstallation) else [],
    )
    return Change(_INSTALLATION, _key(planned), encode(stored))


def _seed(root: InstallationRoot) -> bytes | None:
    if isinstance(root, HostRoot):
        return root.box.reveal()
    return root.seed.reveal() if isinstance(root, MailboxRoot) else None


def _root(stored: _StoredInstallation) -> InstallationRoot:
    if stored.root_relay is not None and stored.root_seed is not None:
        return HostRoot(Seed(stored.root_seed), stored.root_relay)
    if stored.root_relay is not None:
        return ListedRoot(stored.root_relay)
    if stored.root_seed is None or stored.root_address is None:
        raise DecodeError("an installation has no root")
    return MailboxRoot(Seed(stored.root_seed), parse_address(stored.root_address))


def _tree(stored: _StoredInstallation) -> Tree:
    tree = Tree(dict(stored.parents))
    if len(tree.levels) < len(tree.parents) or not tree.parents.keys() >= set(stored.missing):
        raise DecodeError("an installation's tree has no way up")
    return tree


def _key(planned: TreeInstallation | Withdrawal) -> bytes:
    return _of_day(planned.name, planned.installation.day) + bytes([planned.number])
