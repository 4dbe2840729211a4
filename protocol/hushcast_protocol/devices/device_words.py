"""Words on devices: what each device last said of each: of itself, that it let in another, or removed it.

Of all words on a device one holds, and is told. The others are kept behind it: where the writer of that one
does not stand any more, its word falls, and what had been said before holds again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.devices.shared_entries import EntryKind, SharedEntry

MAX_WORDS = 8  # on one device: its own, of who let it in, of who removed it; what was said first stays


class DeviceWords:
    """The words that were heard."""

    def __init__(self) -> None:
        self._words: dict[bytes, dict[PublicKey, SharedEntry]] = {}
        self.noted = 0
        """How many ever were."""

    def __iter__(self) -> Iterator[SharedEntry]:
        return (word for words in self._words.values() for word in words.values())

    def wants(self, word: SharedEntry) -> bool:
        """Tell whether there is room for one, and nothing later is known of its writer and that device."""
        words = self._words.get(word.name, {})
        before = words.get(word.device)
        return len(words) < MAX_WORDS if before is None else before.rank() < word.rank()

    def note(self, word: SharedEntry, is_own: bool = False) -> None:
        """Keep one, if it is wanted; one's own in any case."""
        words = self._words.setdefault(word.name, {})
        if is_own and word.device not in words and len(words) >= MAX_WORDS:
            words.popitem()
        if self.wants(word):
            words[word.device] = word
            self.noted += 1

    def keep_those_of(self, staying: Collection[PublicKey]) -> None:
        """Let the words of all other devices fall."""
        kept = [word for word in self if word.device in staying]
        self._words = {}
        for word in kept:
            self._words.setdefault(word.name, {})[word.device] = word

    def on(self, device: bytes) -> SharedEntry | None:
        """Return the word that holds on a device, if there is one."""
        return max(self._words.get(device, {}).values(), key=SharedEntry.rank, default=None)

    def removes(self, device: bytes) -> bool:
        """Tell whether the word that holds on a device is that it was removed."""
        word = self.on(device)
        return word is not None and word.is_removal()

    def of_itself(self, device: bytes) -> SharedEntry | None:
        """Return what a device said of itself, if it was heard."""
        return self._words.get(device, {}).get(device)

    def sponsorships(self, living: Collection[PublicKey]) -> list[SharedEntry]:
        """Return who let in whom, to be told: one word on each that lives, of one that does if it can be."""
        words = sorted(self, key=lambda word: (word.device in living, word.rank()))
        found = {word.name: word for word in words if word.is_sponsorship() and word.name in living}
        return list(found.values())

    def sponsored(self, by: Collection[PublicKey], without: Collection[PublicKey]) -> frozenset[PublicKey]:
        """Return these devices, whom they let in, and whom those did in turn; `without` some."""
        found = frozenset(by).difference(without)
        sponsorships = [word for word in self if word.is_sponsorship() and word.name not in without]
        while more := {word.name for word in sponsorships if word.device in found} - found:
            found |= more
        return found


def in_order(entries: Iterable[SharedEntry]) -> list[SharedEntry]:
    """Return entries as they can be taken: a removal by one that was removed since before that one's.

    What devices say of themselves is first of all, then who let in whom: inviters before those that they let
    in. Raises `DecodeError`.
    """
    introductions: list[SharedEntry] = []
    sponsorships: list[SharedEntry] = []
    removals: list[SharedEntry] = []
    others: list[SharedEntry] = []
    for entry in entries:
        if entry.kind is not EntryKind.DEVICE:
            others.append(entry)
        elif entry.is_removal():
            removals.append(entry)
        else:
            (sponsorships if entry.is_sponsorship() else introductions).append(entry)
    sponsorships = _in_turn(sponsorships, lambda word: word.device, lambda word: word.name)
    removals = _in_turn(removals, lambda word: word.name, lambda word: word.device)
    return [*introductions, *sponsorships, *removals, *others]


def _in_turn(
    words: list[SharedEntry], after: Callable[[SharedEntry], bytes], of: Callable[[SharedEntry], bytes]
) -> list[SharedEntry]:
    """Put each word behind all `of` the device that it is to come `after`."""
    ordered: list[SharedEntry] = []
    for _ in range(MAX_WORDS):  # one by the other: more than a person does
        before = {of(word) for word in words}
        ordered += [word for word in words if after(word) not in before]
        words = [word for word in words if after(word) in before]
    return [*ordered, *words]
