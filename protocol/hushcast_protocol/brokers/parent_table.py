"""What a broker shows its parent, what of it is to be said next, and how far it is confirmed.

Each change has a version. A version is confirmed once the parent has accepted all that was to be said of it,
on the link that is open now. One batch is under way at a time; what changes meanwhile is in the next. What
changed may come in pieces: until all of a table is shown, no version since its first piece is confirmed.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, TypeVar

from hushcast_protocol.brokers.filter_routes import table_digest_in_pieces
from hushcast_protocol.brokers.frames import MAX_IN_ONE, Advertise
from hushcast_protocol.brokers.items import Item, ItemChanges

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SentAdvertisement:
    """What is in one advertisement."""

    add: tuple[Item, ...]
    remove: tuple[bytes, ...]
    whole: Literal["no", "part", "end"]

    @property
    def is_question(self) -> bool:
        """Whether it says nothing, and is sent for its answer alone."""
        return self.whole == "no" and not self.add and not self.remove

    def frame(self, serial: int) -> Advertise:
        """Return it as a frame."""
        return Advertise(serial, self.add, self.remove, self.whole)


class ParentTable:
    """One broker's table as its parent is to have it."""

    def __init__(self) -> None:
        self.shown: dict[bytes, Item] = {}
        """By name."""
        self.version = 0
        self.confirmed = 0
        self._complete = 0  # the last version of which all is shown
        self._incomplete: set[Hashable] = set()  # tables of which more is to be shown
        self._add: dict[bytes, Item] = {}
        self._remove: set[bytes] = set()
        self._again: dict[bytes, int] = {}  # the versions of what is shown, and to be said once more
        self._said: int | None = None  # the version that the batch under way brings the parent to
        self._is_linked = False
        self._is_whole_due = False
        self._is_answer_due = False  # the parent has all, and may not have confirmed it yet

    def recall(self, items: Iterable[Item]) -> None:
        """Show what the parent had before a restart, which is to be said only if it has something else."""
        self.version += 1
        self._complete = self.version
        self.shown.update((one.name, one) for one in items)

    def change(self, changes: ItemChanges, table: Hashable = None) -> int:
        """Take what changed; return the version of it. `table` is whose it is, if it may come in pieces."""
        self.version += 1
        (self._incomplete.discard if changes.is_all_shown else self._incomplete.add)(table)
        if not self._incomplete:
            self._complete = self.version
        for name in changes.withdraw:
            del self.shown[name]
            was_said = self._again.pop(name, None) is not None
            if self._add.pop(name, None) is None or was_said:
                self._remove.add(name)
        for one in changes.show:
            name = one.name
            if name in self._again or (name in self.shown and name not in self._add):
                self._again[name] = self.version
            self.shown[name] = one
            if name in self._remove:
                self._remove.remove(name)
            else:
                self._add[name] = one
        self._note()
        return self.version

    def forget(self, names: Iterable[bytes]) -> None:
        """Know nothing more of items that the parent drops by itself."""
        for name in names:
            self.shown.pop(name, None)
            self._add.pop(name, None)
            self._again.pop(name, None)
            self._remove.discard(name)

    def linked(self, digest: bytes) -> Generator[None, None, None]:
        """Hear what the parent has, on a link that has just opened; compare it in pieces.

        What changes meanwhile is said after that.
        """
        self.unlinked()
        self._forget()
        own = yield from table_digest_in_pieces(self.shown)
        self._is_linked = True
        self._is_whole_due = digest != own
        # That the parent has it does not say that those above have: a link may end before the answer.
        self._is_answer_due = self.confirmed < self._complete
        if not self._is_whole_due:
            self._say_again()
        self._note()

    def unlinked(self) -> None:
        """Hear that the link is gone: nothing is confirmed until the next."""
        self._is_linked = False
        self._said = None

    def next(self) -> Sequence[SentAdvertisement]:
        """Return the batch to say now; none if there is nothing to say, or one is under way."""
        if not self._is_linked or self._said is not None:
            return ()
        whole = self._is_whole_due or len(self._add) + len(self._remove) > len(self.shown) + MAX_IN_ONE
        batch = _whole(self.shown.values()) if whole else _changes(self._add.values(), self._remove)
        if not batch and self._is_answer_due:
            batch = [SentAdvertisement((), (), "no")]
        if batch:
            self._said = self._complete
            self._is_whole_due = self._is_answer_due = False
            self._forget()
            if whole:  # in which nothing is said once more
                self._say_again()
        return batch

    def answered(self, is_accepted: bool) -> int:
        """Hear whether the parent accepted all of the batch under way; return the version that it was of.

        If not, all is due again.
        """
        said, self._said = self._said, None
        assert said is not None, "something is under way"
        if is_accepted:
            self.confirmed = max(self.confirmed, said)
            for name in [name for name, of in self._again.items() if of <= said and name not in self._add]:
                del self._again[name]
        else:
            self._is_whole_due = True
        self._note()
        return said

    def _forget(self) -> None:
        self._add.clear()
        self._remove.clear()

    def _say_again(self) -> None:
        self._add.update((name, self.shown[name]) for name in self._again)

    def _note(self) -> None:
        """Confirm what needs nothing to be said."""
        is_due = self._is_whole_due or self._is_answer_due or self._add or self._remove
        if self._is_linked and self._said is None and not is_due:
            self.confirmed = self._complete


def _whole(shown: Iterable[Item]) -> list[SentAdvertisement]:
    pieces = _pieces(shown) or [()]
    return [SentAdvertisement(piece, (), "part") for piece in pieces[:-1]] + [
        SentAdvertisement(pieces[-1], (), "end")
    ]


def _changes(add: Iterable[Item], remove: Iterable[bytes]) -> list[SentAdvertisement]:
    """Return what is added, and then what is removed: what covers a filter is there before that goes."""
    adding, removing = _pieces(add), _pieces(remove)
    if not adding or not removing:
        return [SentAdvertisement(piece, (), "no") for piece in adding] + [
            SentAdvertisement((), piece, "no") for piece in removing
        ]
    return [
        *(SentAdvertisement(piece, (), "no") for piece in adding[:-1]),
        SentAdvertisement(adding[-1], removing[0], "no"),
        *(SentAdvertisement((), piece, "no") for piece in removing[1:]),
    ]


def _pieces(items: Iterable[T]) -> list[tuple[T, ...]]:
    rest = iter(items)
    return list(iter(lambda: tuple(islice(rest, MAX_IN_ONE)), ()))
