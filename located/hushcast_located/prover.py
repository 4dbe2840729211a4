"""Answers with proofs for many subscriptions at once, on arrays: as `ProviderBatch.answers`, byte for byte.

What is shown of a part of the tree is one of five things, the same for everybody, and encoded once. Which of
them each subscription gets is found for all subscriptions together, from the root down, a level at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import msgspec
import numpy as np

from hushcast_located.crowd import Crowd, Ints, crowd_by
from hushcast_located.similarity_reach import least_common, reached
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.located_answer import LocatedAnswer, ProviderBatch
from hushcast_protocol.spatial.located_subscription import LocatedSubscription
from hushcast_protocol.spatial.tmr_tree import TreeNode, TreePart
from hushcast_protocol.spatial.verification_object import OpenedNode, closed, hidden, shown_whole

_CELLS = 2**20  # of a message and a subscription, in 8 MB: larger arrays do not stay in the processor's cache
_HIDDEN, _CLOSED, _WHOLE, _BOXED = range(4)  # ways to show a part; `_WHOLE` is opened, or wanted
_WAYS = 4


@dataclass(frozen=True)
class _Level:
    """Parts of a tree that are equally far from its root, in their order."""

    first: Ints
    """Of each part: its first child in the level below."""
    children: Ints
    lows: Ints
    """Three rows, as `highs`."""
    highs: Ints
    rank: Ints
    """Of each part among all parts, a node before what is below it."""


class Prover:
    """A batch, ready to be answered from."""

    def __init__(self, feed: ProviderBatch) -> None:
        self._feed = feed
        self._levels, parts = _levels(feed.root)
        self._pieces = [piece for part in parts for piece in _pieces(part)]
        """Under each part's rank times `_WAYS`: how it is shown by each way."""
        self._numbers = {word: np.array(some) for word, some in feed.said.numbers.items()}
        batch, table = feed.batch, feed.table.whole
        self._signed = msgspec.Raw(encode(batch.signed)), msgspec.Raw(encode(table.signed))

    def answers(self, subscriptions: Sequence[LocatedSubscription]) -> Iterator[tuple[bytes, int]]:
        """Yield each subscription's answer, encoded, and the number of messages in it."""
        at_once = max(_CELLS // max(self._feed.batch.body.count, 1), 16)
        for at in range(0, len(subscriptions), at_once):
            some = subscriptions[at : at + at_once]
            for one, (proof, wanted) in zip(some, self._proofs(some), strict=True):
                yield self._answer(one, proof), wanted

    def _answer(self, one: LocatedSubscription, proof: bytes) -> bytes:
        batch, table = self._signed
        whole = (
            LocatedAnswer.__struct_config__.tag,
            self._feed.batch.body.number,
            one.digest,
            batch,
            table,
            self._feed.table.excerpt(one),
            self._feed.said.paged.showing(one.words),
            msgspec.Raw(proof),
            self._feed.table.whole.keys,
        )
        return encode(whole)

    def _proofs(self, subscriptions: Sequence[LocatedSubscription]) -> Iterator[tuple[bytes, int]]:
        if self._feed.root is None:
            yield from ((encode(None), 0) for _ in subscriptions)
            return
        crowd = crowd_by(self._feed.table, subscriptions)
        shown, wanted = self._shown(crowd)
        bounds = np.searchsorted(shown, np.arange(len(crowd) + 1) * len(self._pieces))
        pieces = (shown % len(self._pieces)).tolist()
        for number, (first, last) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
            yield b"".join(map(self._pieces.__getitem__, pieces[first:last])), int(wanted[number])

    def _shown(self, crowd: Crowd) -> tuple[Ints, Ints]:
        """Return what is shown to all: sorted numbers of subscription and piece; and who gets how many."""
        rows = crowd.shares[0].astype(np.int64), crowd.shares[1].astype(np.int64), crowd.whole
        least, places = least_common(rows), crowd.places.astype(np.int64)
        found: list[Ints] = []
        # Pairs of a subscription, and a part of the level that is looked at.
        who = np.arange(len(crowd))
        parts = np.zeros_like(who)
        opened: tuple[Ints, Ints] | None = None
        for level, most in zip(self._levels, reversed(self._most(crowd)), strict=True):
            common = most[parts, who]
            ways = np.full(len(who), _HIDDEN)
            possible = np.flatnonzero(common >= least[who])
            whom, which = who[possible], parts[possible]
            squares = _squares(places[:, whom], level.lows[:, which], level.highs[:, which])
            reach = reached(
                (rows[0][whom], rows[1][whom], rows[2][whom]), crowd.most, common[possible], squares
            )
            ways[possible] = np.where(reach, _WHOLE, _CLOSED)
            if opened is not None:
                above, firsts = opened
                boxed = np.logical_or.reduceat(ways == _HIDDEN, firsts)
                found.append(above + boxed * (_BOXED - _WHOLE))
            shown = who * len(self._pieces) + level.rank[parts] * _WAYS + ways
            whole = possible[reach]
            if level is self._levels[-1]:
                found.append(shown)
                return np.sort(np.concatenate(found)), np.bincount(who[whole], minlength=len(crowd))
            found.append(shown[ways != _WHOLE])
            if not len(whole):
                break
            children = level.children[parts[whole]]
            firsts = np.cumsum(children) - children
            opened = shown[whole], firsts
            who, first = np.repeat(who[whole], children), level.first[parts[whole]] - firsts
            parts = np.repeat(first, children) + np.arange(len(who))
        return np.sort(np.concatenate(found)), np.zeros(len(crowd), np.int64)

    def _most(self, crowd: Crowd) -> list[Ints]:
        """Return of each level, the lowest first, what parts have in common with subscriptions at most."""
        common = np.zeros((self._feed.batch.body.count, len(crowd)), np.int64)
        for number, (first, last) in enumerate(pairwise(crowd.starts.tolist())):
            for at in range(first, last):
                some = self._numbers.get(crowd.names[crowd.words[at]])
                if some is not None:
                    common[some, number] += crowd.weights[at]
        found = [common]
        for level in self._levels[-2::-1]:
            found.append(np.maximum.reduceat(found[-1], level.first, axis=0))
        return found


def _squares(places: Ints, lows: Ints, highs: Ints) -> Ints:
    """Return the squares of the least distances from places to boxes, all in three rows."""
    away = np.maximum(lows - places, places - highs)
    np.maximum(away, 0, out=away)
    squares: Ints = (away * away).sum(axis=0)
    return squares


def _levels(root: TreeNode | None) -> tuple[list[_Level], list[TreePart]]:
    """Return the levels of a tree, and all of its parts, a node before what is below it."""
    parts: list[TreePart] = []
    levels: list[list[tuple[int, TreePart]]] = []

    def add(part: TreePart, depth: int) -> None:
        if depth == len(levels):
            levels.append([])
        levels[depth].append((len(parts), part))
        parts.append(part)
        for child in part.children if isinstance(part, TreeNode) else ():
            add(child, depth + 1)

    if root is not None:
        add(root, 0)
    return [_level(level) for level in levels], parts


def _level(of: list[tuple[int, TreePart]]) -> _Level:
    children = np.array([len(part.children) if isinstance(part, TreeNode) else 0 for _, part in of])
    lows, highs = (np.array([part.box[corner] for _, part in of]).T.copy() for corner in (0, 1))
    rank = np.array([rank for rank, _ in of])
    return _Level(np.cumsum(children) - children, children, lows, highs, rank)


def _pieces(part: TreePart) -> Iterator[bytes]:
    """Yield a part as it is shown hidden, closed, and whole; a node whole without and with its box.

    A node is whole with all that stands before its children: these come behind it.
    """
    yield encode(hidden(part))
    yield encode(closed(part))
    if not isinstance(part, TreeNode):
        yield encode(shown_whole(part))
        yield b""
        return
    for box in (None, part.box):
        behind = encode((None,) * len(part.children))[: -len(part.children)]
        yield encode(OpenedNode(box, ()))[: -len(encode(()))] + behind
