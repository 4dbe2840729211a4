"""What one device takes of what the others tell, what it lets fall of that, and what it writes anew."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import trio

from hushcast_local.devices.circle_records import OwnCircle, circle_change, entry_change, fallen_changes
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.devices.device_words import in_order
from hushcast_protocol.devices.shared_entries import SharedEntry
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log
from hushcast_runtime.storage.changes import Change

_STEP = 32  # entries whose signatures are checked, made or forgotten at once, some 5 ms

Follow = Callable[[SharedEntry, bool], None]
"""Does here what an entry of another device says; or no more, where the second one is true."""


class CircleEntries:
    """The entries of a circle on one device; `follow` hears of those that came, or that fell."""

    def __init__(self, own: OwnCircle, calendar: Calendar, context: Context, follow: Follow) -> None:
        self._own = own
        self._calendar = calendar
        self._env = context.env
        self._store = context.store
        self._follow = follow

    async def merge(self, entries: Iterable[SharedEntry], is_present: bool = True) -> None:
        """Take those that count of what was told under the secret of now, or under one of before."""
        own, today = self._own, self._calendar.day(self._env.now())
        noted = own.state.words.noted
        changed: list[SharedEntry] = []
        for number, entry in enumerate(_taken_so(entries)):
            try:
                if not own.state.counts(entry, own.keys.without, is_present):
                    continue
                if entry.name == own.key and entry.is_removal():
                    entry.check()
                    own.removed_by = entry.device
                elif own.state.merge(entry, today):
                    changed.append(entry)
            except PeerError:
                log.debug("an entry was not its device's")
            if number % _STEP == _STEP - 1:
                await trio.lowlevel.checkpoint()
        records = [entry_change(entry) for entry in changed]
        removed = own.removed()
        records += await self._let_fall(lambda: (own.state.part_from(removed, _STEP), []))
        if own.state.words.noted != noted:
            records.append(circle_change(own))
        await self._store.write(*records)
        for entry in changed:
            if entry.device not in removed:
                self._follow(entry, False)

    async def take_over(self, removed: Collection[PublicKey]) -> list[Change]:
        """Write anew what removed devices wrote, and return what changes on disk."""
        changes: list[Change] = []
        while True:
            written, gone = self._own.state.take_over(self._own.seed, removed, _STEP)
            if not written:
                return changes
            changes += map(entry_change, written)
            changes += (entry_change(entry, is_gone=True) for entry in gone)
            await trio.lowlevel.checkpoint()

    async def stay_with(self, others: frozenset[PublicKey], without: frozenset[PublicKey]) -> None:
        """Forget what was heard of all but these: they may be made up, by one that was removed meanwhile.

        So may removals that nobody else has told of, and a secret that was drawn because of these.
        """
        own = self._own
        own.invited = {key: told for key, told in own.invited.items() if key not in without}
        staying = others | own.standing(others)
        changes = await self._let_fall(lambda: own.state.stay_with(staying, without, _STEP))
        own.keys = own.keys._replace(without=own.keys.without & own.state.removed())
        await self._store.write(*changes, circle_change(own))

    async def _let_fall(
        self, forget: Callable[[], tuple[list[SharedEntry], list[SharedEntry]]]
    ) -> list[Change]:
        """Forget in steps, until nothing is left; return what changes on disk.

        `forget` returns what it forgot, and what holds again instead of some of it.
        """
        changes: list[Change] = []
        while True:
            gone, again = forget()
            if not gone:
                return [*changes, circle_change(self._own)] if changes else []
            for entry in gone:
                self._follow(entry, True)
            changes += [*fallen_changes(self._own, gone), *map(entry_change, again)]
            await trio.lowlevel.checkpoint()


def _taken_so(entries: Iterable[SharedEntry]) -> list[SharedEntry]:
    readable: list[SharedEntry] = []
    for entry in entries:
        try:
            entry.is_removal()
        except PeerError:
            continue
        readable.append(entry)
    return in_order(readable)
