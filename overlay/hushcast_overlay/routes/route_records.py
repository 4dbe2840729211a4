"""A route as it lies in the store: its box, its installations and what is left to withdraw."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import msgspec

from hushcast_overlay.routes.box_records import deleted_box, kept_box, load_boxes
from hushcast_overlay.routes.route import TreeInstallation, Withdrawal
from hushcast_overlay.routes.route_box import RouteBox
from hushcast_protocol.base.crypto.secrets import LeaseSecret, Seed
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import Bytes16, Counter, RelayId, encode
from hushcast_protocol.overlay.installations import (
    HostRoot,
    Installation,
    InstallationRoot,
    ListedRoot,
)
from hushcast_protocol.overlay.tree import Tree
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore
from hushcast_runtime.storage.store import Store, StoreError, record_reader

_INSTALLATION = RecordKind(
    "installation",
    StateOwner.OVERLAY_DAEMON,
    holds="trees, secrets of their leases, which relays confirmed",
    lifetime="until lapsed or withdrawn",
)
_NAME = 16  # bytes of the name of what is wanted


class _StoredInstallation(msgspec.Struct, frozen=True, array_like=True):
    day: Counter
    root_relay: RelayId | None
    root_seed: bytes | None
    root_address: str | None  # of a mailbox, as version 1 had them
    parents: list[tuple[RelayId, RelayId | None]]
    trunk: Bytes16
    entries: tuple[Bytes16, ...]
    secret: bytes
    missing: list[RelayId]
    withdrawing: bool
    copy: int = 0
    former: list[RelayId] = []


_decode_installation = record_reader(_StoredInstallation, "installation")


class RouteRecords:
    """Boxes and installations in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

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
        self, name: bytes, box: RouteBox | None, planned: Iterable[TreeInstallation]
    ) -> list[Withdrawal]:
        """End a box, and turn the installations into withdrawals, all in one commit."""
        ended = [
            Withdrawal(name, held.number, held.installation, set(held.installation.tree.parents))
            for held in planned
        ]
        ending = [] if box is None else [kept_box(name, box)]
        await self._store.write(*ending, *(_change(one, one.left) for one in ended))
        return ended

    def forget(self, planned: TreeInstallation | Withdrawal) -> None:
        """Delete an installation that lapsed or was withdrawn everywhere."""
        self._store.write_soon(Change(_INSTALLATION, _key(planned), None))

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


async def installations_without_root(store: Store) -> list[Change]:
    """Return what deletes the installations that led to mailboxes, of which there are none any more."""
    gone = []
    for key, value in await store.scan(_INSTALLATION):
        with suppress(StoreError):  # what is damaged is set aside when it is loaded
            if _decode_installation(value).root_relay is None:
                gone.append(Change(_INSTALLATION, key, None))
    return gone


def _of_day(name: bytes, day: int) -> bytes:
    return name + day.to_bytes(8, "big")


def _change(planned: TreeInstallation | Withdrawal, missing: set[RelayId]) -> Change:
    installation = planned.installation
    root = installation.root
    stored = _StoredInstallation(
        installation.day,
        root.relay if isinstance(root, ListedRoot | HostRoot) else None,
        root.box.reveal() if isinstance(root, HostRoot) else None,
        None,
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


def _root(stored: _StoredInstallation) -> InstallationRoot:
    if stored.root_relay is None:
        raise DecodeError("an installation has no root")
    if stored.root_seed is None:
        return ListedRoot(stored.root_relay)
    return HostRoot(Seed(stored.root_seed), stored.root_relay)


def _tree(stored: _StoredInstallation) -> Tree:
    tree = Tree(dict(stored.parents))
    if len(tree.levels) < len(tree.parents) or not tree.parents.keys() >= set(stored.missing):
        raise DecodeError("an installation's tree has no way up")
    return tree


def _key(planned: TreeInstallation | Withdrawal) -> bytes:
    return _of_day(planned.name, planned.installation.day) + bytes([planned.number])
