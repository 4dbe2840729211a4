"""What is kept of a subscription between two lives of its program, in files that only its owner can read."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec.structs import replace

from hushcast_protocol.base.errors import DecodeError, UsageError, unreadable
from hushcast_protocol.base.wire import Bytes32, Counter, Wire, decoder, encode
from hushcast_protocol.spatial.feed_events import FeedPosition
from hushcast_protocol.spatial.keywords import WordRule
from hushcast_protocol.spatial.located_subscription import LocatedSubscription, keywords_as_asked
from hushcast_protocol.spatial.offer import MAX_OFFER, Link
from hushcast_protocol.spatial.weight_table import MAX_TABLE
from hushcast_runtime.files import sync_directory, write_private

MAX_KEPT = 81_920  # bytes of a file without a table: three of the largest subscriptions, and text
MAX_KEYWORD_TEXT = 4_096  # characters of keywords as they were written: all that may be asked for
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}\Z")
_SUFFIX, _TABLE, _LOCK = ".subscription", ".table", ".lock"


class Blur(Wire, frozen=True):
    """How much less the provider is told: kilometres of a cell, and how many keywords; `None` for all."""

    kilometres: float | None
    words: int | None


class FeedRecord(Wire, frozen=True, tag="located-feed/1"):
    """A subscription: of which offer, by which name and topic, what is wanted, how far it was followed."""

    offer: Annotated[str, msgspec.Meta(max_length=2 * MAX_OFFER)]
    name: Bytes32
    answers: Link
    wanted: LocatedSubscription
    blur: Blur | None
    told: LocatedSubscription | None = None
    """What the provider is told; `None` until that is chosen."""
    told_before: LocatedSubscription | None = None
    """What it was told before, to which answers may still come."""
    number: Counter = 0
    """Of the last request."""
    first: Counter = 0
    """Of the first request from which on nothing may be missing."""
    taken: Counter = 0
    """Of the last request of which the provider said that it took it."""
    until: Counter = 0
    """The day (since 1970) on which the last request ends."""
    renew_at: Counter = 0
    """Unix seconds."""
    followed: FeedPosition | None = None
    keywords: Annotated[str, msgspec.Meta(max_length=MAX_KEYWORD_TEXT)] = ""
    """What was asked for, as it was written; nothing where an earlier version kept it: the words, then."""
    rule: WordRule = WordRule.RUNS
    """By which `wanted` was cut."""

    def telling(self, told: LocatedSubscription | None) -> FeedRecord:
        """Return it with something else to tell the provider, `None` where that is still to be chosen.

        A number is left out, so that what the provider says of an earlier request is not taken for this one.
        """
        number = self.number and self.number + 1
        return replace(self, told=told, told_before=self.told, number=number, taken=0)

    def cut_by(self, rule: WordRule) -> FeedRecord:
        """Return it with the words that another rule makes; `UsageError` where none can be."""
        words = keywords_as_asked([self.keywords or " ".join(self.wanted.words)], rule)
        return replace(self, wanted=replace(self.wanted, words=words), rule=rule)


_decode: Callable[[bytes], FeedRecord] = decoder(FeedRecord, "subscription that was kept", MAX_KEPT)


class NoFiles:
    """Keeps nothing: for a subscription that ends with its program."""

    name = ""

    def load(self) -> FeedRecord | None:
        """Return `None`."""
        return None

    def save(self, kept: FeedRecord) -> None:
        """Do nothing."""

    def load_table(self) -> bytes | None:
        """Return `None`."""
        return None

    def save_table(self, data: bytes) -> None:
        """Do nothing."""

    def remove(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class SubscriptionFiles:
    """One subscription's files in a folder; nobody else has them while this is open."""

    def __init__(self, folder: Path, name: str) -> None:
        """Raise `UsageError` for a name that no file can have, or whose subscription is followed already."""
        if not _NAME.match(name):
            raise UsageError(f"{name[:64]!r} cannot be a name: 1 to 64 letters, digits, '_', '-' and '.'")
        self.name = name
        self._file = folder / f"{name}{_SUFFIX}"
        self._table = folder / f"{name}{_TABLE}"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(folder / f"{name}{_LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise UsageError(f"{error.filename} cannot be made: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise UsageError(f"{name} is followed already, by another program: end that first") from None

    def load(self) -> FeedRecord | None:
        """Return what was kept, `None` if there is nothing; raise `UsageError`."""
        data = _read(self._file, MAX_KEPT)
        if data is None:
            return None
        try:
            return _decode(data)
        except DecodeError:
            raise UsageError(f"{self._file} is damaged: remove it, and subscribe anew") from None

    def save(self, kept: FeedRecord) -> None:
        """Keep this from now on, durably; raise `UsageError`."""
        _write(self._file, encode(kept))

    def load_table(self) -> bytes | None:
        """Return the owner's table that was kept."""
        return _read(self._table, MAX_TABLE)

    def save_table(self, data: bytes) -> None:
        """Keep the owner's table."""
        _write(self._table, data)

    def remove(self) -> None:
        """Forget the subscription."""
        for file in (self._file, self._table):
            file.unlink(missing_ok=True)

    def close(self) -> None:
        """Let others have it."""
        os.close(self._lock)


def names(folder: Path) -> Iterator[str]:
    """Yield the names of the subscriptions that are kept in a folder, sorted."""
    for file in sorted(folder.glob(f"*{_SUFFIX}")):
        yield file.name.removesuffix(_SUFFIX)


def look(folder: Path, name: str) -> FeedRecord | None:
    """Return what is kept of a subscription, perhaps while it is followed; `None` for what cannot be read."""
    try:
        data = _read(folder / f"{name}{_SUFFIX}", MAX_KEPT)
        return None if data is None else _decode(data)
    except (DecodeError, UsageError):
        return None


def fresh_name(folder: Path) -> str:
    """Return a name that no subscription of a folder has."""
    taken, number = set(names(folder)), 1
    while f"feed-{number}" in taken:
        number += 1
    return f"feed-{number}"


def _read(file: Path, most: int) -> bytes | None:
    try:
        with file.open("rb") as stream:
            return stream.read(most + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable(file, error) from None


def _write(file: Path, data: bytes) -> None:
    try:
        write_private(file, data)
        sync_directory(file.parent)
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}") from None
