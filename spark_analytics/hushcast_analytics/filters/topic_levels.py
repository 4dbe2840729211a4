"""The levels of one topic's filters under each condition (Tarkoma and Prehofer §4), in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hushcast_analytics.filters.boxes import Boxes, Slots

MOST_KEPT = 400_000_000  # bytes of crowds that a process remembers

Codes = npt.NDArray[np.int32]
"""Sources as numbers from 0, each once."""
Crowd = npt.NDArray[Any]
"""Some sources, each once: as codes where they are few, else as a bitmap of 64-bit words."""


class Sources:
    """Who is behind each slot: slot s has `codes[starts[s]:starts[s + 1]]`."""

    def __init__(self, starts: Slots, codes: Codes) -> None:
        self._starts, self._codes = starts, codes
        self._counts = np.diff(starts)
        every = int(codes.max(initial=-1)) + 1
        self._last = np.zeros(every, np.int32)
        self._words = -(-every // 64)

    def of(self, slots: Slots) -> Crowd:
        """Return the sources of some filters."""
        counts = self._counts[slots]
        before = np.cumsum(counts) - counts
        places = np.arange(int(counts.sum())) + np.repeat(self._starts[slots] - before, counts)
        return self._shorter(self._distinct(self._codes[places]))

    def union(self, crowds: Sequence[Crowd]) -> Crowd:
        """Return the sources that are in any of some crowds."""
        many = [crowd for crowd in crowds if crowd.dtype == np.uint64]
        few = [crowd for crowd in crowds if crowd.dtype != np.uint64]
        if not many:
            return self._shorter(self._distinct(np.concatenate(few)))
        bits = many[0].copy()
        for each in many[1:]:
            bits |= each
        if few:
            bits |= self._bitmap(np.concatenate(few))
        return bits

    def _distinct(self, codes: Codes) -> Codes:
        # Where one stands several times, the last writer wins.
        turns = np.arange(len(codes), dtype=np.int32)
        self._last[codes] = turns
        found: Codes = codes[self._last[codes] == turns]
        return found

    def _shorter(self, codes: Codes) -> Crowd:
        return self._bitmap(codes) if codes.nbytes > self._words * 8 else codes

    def _bitmap(self, codes: Codes) -> Crowd:
        flags = np.zeros(self._words * 64, bool)
        flags[codes] = True
        return np.packbits(flags, bitorder="little").view(np.uint64)


def size_of(crowd: Crowd) -> int:
    """Return how many sources are in a crowd."""
    return int(np.bitwise_count(crowd).sum()) if crowd.dtype == np.uint64 else len(crowd)


def codes_of(crowd: Crowd) -> Codes:
    """Return the sources in a crowd."""
    if crowd.dtype != np.uint64:
        return crowd
    return np.flatnonzero(np.unpackbits(crowd.view(np.uint8), bitorder="little")).astype(np.int32)


class TopicLevels:
    """Who stands behind the filters of one topic; what is below a filter is remembered for those below it."""

    def __init__(self, boxes: Boxes, sources: Sources) -> None:
        self._boxes, self._sources = boxes, sources
        self._kept: dict[int, tuple[Crowd, Crowd]] = {}
        self._bytes = 0

    def crowds(self, slot: int) -> tuple[Crowd, ...]:
        """Return the sources that conditions count for a filter, in the order of `AnonymityCondition`."""
        own = self._sources.of(np.array([slot]))
        above = self._boxes.narrowest(self._boxes.covering(slot))
        return own, *self._below(slot), *self._below_any(above)

    def _below_any(self, slots: Slots) -> tuple[Crowd, Crowd]:
        """Return Source(ImSucc) and Source(Succ) of several filters together."""
        if not slots.size:
            nobody = np.empty(0, np.int32)
            return nobody, nobody
        several = [self._below(int(slot)) for slot in slots]
        if len(several) == 1:
            return several[0]
        near, all_ = zip(*several, strict=True)
        return self._sources.union(near), self._sources.union(all_)

    def _below(self, slot: int) -> tuple[Crowd, Crowd]:
        """Return Source(ImSucc) and Source(Succ) of a filter."""
        if slot in self._kept:
            return self._kept[slot]
        covered = self._boxes.covered(slot)
        found = self._sources.of(self._boxes.widest(covered)), self._sources.of(covered)
        self._bytes += found[0].nbytes + found[1].nbytes
        if self._bytes > MOST_KEPT:
            self._kept.clear()
            self._bytes = 0
        self._kept[slot] = found
        return found
