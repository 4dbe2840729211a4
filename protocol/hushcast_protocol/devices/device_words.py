"""Words on devices: what each device last said of each, of itself, or that another one was removed.

Of all words on a device one holds, and is told. The others are kept behind it: where the writer of that one
does not stand any more, its word falls, and what had been said before holds again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.devices.shared_entries import EntryKind, SharedEntry

MAX_WORDS = 8  # on one device: its own, and of those that remove it; what was said first stays


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
        for device, words in self._words.items():
            self._words[device] = {writer: word for writer, word in words.items() if writer in staying}

    def on(self, device: bytes) -> SharedEntry | None:
        """Return the word that holds on a device, if there is one."""
        return max(self._words.get(device, {}).values(), key=SharedEntry.rank, default=None)


def in_order(entries: Iterable[SharedEntry]) -> list[SharedEntry]:
    """Return entries as they can be taken: a removal by one that was removed since before that one's.

    What devices say of themselves is first of all. Raises `DecodeError`.
    """
    introductions: list[SharedEntry] = []
    removals: list[SharedEntry] = []
    others: list[SharedEntry] = []
    for entry in entries:
        is_of_device = entry.kind is EntryKind.DEVICE
        (removals if entry.is_removal() else introductions if is_of_device else others).append(entry)
    ordered: list[SharedEntry] = []
    for _ in range(MAX_WORDS):  # devices removed one by the other: more than a person does
        writers = {entry.device for entry in removals}
        ordered += [entry for entry in removals if entry.name not in writers]
        removals = [entry for entry in removals if entry.name in writers]
    return [*introductions, *ordered, *removals, *others]
