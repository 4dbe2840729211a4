"""Handing up: what waits for a broker that has left goes back to the root, which sends it down other routes.

Nobody below the root can tell who else asked for the same. So whoever was the parent turns what it had turned
on the way down back, label by label, and so does each broker above it, until the root has the word again and
what it had made of the publication. It takes nothing else: what comes back has to be what it sent, under a
word that it came with.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from hushcast_protocol.base.crypto.secrets import Secret
from hushcast_protocol.base.errors import AuthenticationError, Refusal
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.full.day_rows import ItemOrigin
from hushcast_protocol.brokers.full.group_action import GroupAction
from hushcast_protocol.brokers.full.item_labels import ItemLabel, read_labels
from hushcast_protocol.brokers.full.outer_message import content_of, streamed
from hushcast_protocol.content.messages import TRAIL_SIZE, Message

MAX_HANDED_UP = (
    32 * 1024 * 1024
)  # bytes a day from one child: as much as may wait for one broker that has left
MAX_KEPT = 256 * 1024 * 1024  # bytes at the root: what eight of its children may hand up
MESSAGE = 640  # bytes that a message counts besides its body: record, index and what memory knows of it


def turned_back(
    action: GroupAction, message: Message, origin: Callable[[bytes], ItemOrigin | None]
) -> tuple[ItemLabel, ...]:
    """Return the labels under which a message came that is under a child's now; none of those not known.

    `origin` tells it by the name of the child's item. Raises `PeerError` where its tokens are no labels, or
    what a label has beside a name that is known is no element.
    """
    found: dict[bytes, ItemLabel] = {}
    for label in read_labels(message.tokens):
        if (came := origin(label.name)) is not None:
            found[came.name] = ItemLabel(came.name, action.strip(came.key, label.content))
    return tuple(found.values())


def as_published(action: GroupAction, root: Secret, outer: Message, labels: Sequence[ItemLabel]) -> Message:
    """Return what was published, at the root, whose secret is `root`; its tokens are the labels' names.

    Raises `AuthenticationError` where the root never made this message, or made it under other contents.
    """
    contents = {label.content for label in labels}
    if len(contents) != 1:
        raise AuthenticationError("what is handed up has not one content")
    (content,) = contents
    published = streamed(content, outer)
    if content_of(action, root, published) != content:
        raise AuthenticationError("what is handed up is nothing that the root sent")
    names = tuple(label.name for label in labels)
    return msgspec.structs.replace(published, tokens=names, trail=bytes(TRAIL_SIZE))


def check_words(published: Message, words: Collection[bytes]) -> None:
    """Raise `AuthenticationError` where a message is handed up under a word that it did not come with."""
    if not set(published.tokens) <= set(words):
        raise AuthenticationError("a message is handed up under another word than it had")


class HandUpShares:
    """How much each child has handed up of each day."""

    def __init__(self) -> None:
        self._bytes: dict[tuple[int, PublicKey], int] = {}

    def take(self, child: PublicKey, message: Message) -> None:
        """Count a message; raise `Refusal` (`quota`) where it is too much."""
        so_far = self._bytes.get((message.day, child), 0) + len(message.body) + MESSAGE
        if so_far > MAX_HANDED_UP:
            raise Refusal("quota")
        self._bytes[message.day, child] = so_far

    def give_back(self, child: PublicKey, message: Message) -> None:
        """Count a message no more: there was no room for it."""
        if (at := (message.day, child)) in self._bytes:
            self._bytes[at] -= len(message.body) + MESSAGE

    def expire(self, day: int) -> None:
        """Forget the days up to this one."""
        self._bytes = {at: size for at, size in self._bytes.items() if at[0] > day}


class _Held(NamedTuple):
    day: int
    size: int
    words: frozenset[bytes]


class HandedUpMessages:
    """What the root has of it, by word, until the day lapses; bodies are elsewhere."""

    def __init__(self) -> None:
        self._held: dict[bytes, _Held] = {}
        self._of: dict[bytes, dict[bytes, None]] = {}
        self._size = 0
        self._due: dict[bytes, None] = {}

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self._held)

    def words(self, message: bytes) -> frozenset[bytes]:
        """Return the words under which a message is kept, by its id."""
        held = self._held.get(message)
        return frozenset() if held is None else held.words

    def put(self, message: Message) -> bool:
        """Keep a message under its words, and have it looked up; return whether anything of that is new.

        Raises `Refusal` (`quota`) where there is no room.
        """
        before = self._held.get(message.id)
        words = self.words(message.id) | set(message.tokens)
        if before is not None and words == before.words:
            return False
        size = len(message.body) + MESSAGE
        if before is None:
            if self._size + size > MAX_KEPT:
                raise Refusal("quota")
            self._size += size
        self._held[message.id] = _Held(message.day, size, words)
        for word in message.tokens:
            self._of.setdefault(word, {})[message.id] = None
        self._due[message.id] = None
        return True

    def asked(self, words: Iterable[bytes]) -> None:
        """Hear that somebody has asked for words: what is kept of them is looked up again."""
        for word in words:
            self._due.update(self._of.get(word, {}))

    @property
    def is_due(self) -> bool:
        """Whether anything is to be looked up."""
        return bool(self._due)

    def take_due(self) -> list[bytes]:
        """Return the ids of messages that are to be looked up now."""
        due, self._due = list(self._due), {}
        return due

    def expire(self, day: int) -> list[bytes]:
        """Forget the days up to this one; return the ids of messages."""
        gone: Mapping[bytes, _Held] = {name: one for name, one in self._held.items() if one.day <= day}
        for name, one in gone.items():
            del self._held[name]
            self._due.pop(name, None)
            self._size -= one.size
            for word in one.words:
                self._of[word].pop(name, None)
                if not self._of[word]:
                    del self._of[word]
        return list(gone)
