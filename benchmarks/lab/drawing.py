"""Drawing: one run of a lab, as arrays of numbers: who sits where, who is up, which way messages go.

Participants are numbered, relays first, then clients; -1 is the root of a tree, or nobody. Each draw has a
generator of its own, seeded with what it is for: no draw depends on another's being made.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from benchmarks.lab.asked import Asked

Numbers = npt.NDArray[np.int32]
Columns = dict[str, Numbers]
ROOT = -1

# What a generator is for. Seeds are padded with zeros, so none is zero and all have as many numbers.
_OWNER, _TREE, _MESSAGES, _PRESENCE, _DROPPING, _SHARD, _HOST = 1, 2, 3, 4, 5, 6, 7

ATTEMPTS = 3  # origins that a publisher tries for one drop
LONGEST_WAY = 32  # relays after which a message's way ends, detours and all


class Run:
    """One run; `watched` participants are those whose observations are wanted, all unless given."""

    def __init__(self, asked: Asked, number: int, watched: Numbers | None = None) -> None:
        self._asked = asked
        self._number = number
        self._watched = np.full(asked.people + 1, watched is None)  # the last place is for nobody, -1
        if watched is not None:
            self._watched[watched] = True
        self._watched[ROOT] = False

    def _draws(self, purpose: int, *names: int) -> np.random.Generator:
        padded = (*names, 0, 0, 0)[:3]
        return np.random.default_rng((self._asked.seed, self._number, purpose, *padded))

    @cached_property
    def owners(self) -> list[int]:
        """Each topic's subscriber."""
        asked, (first, people) = self._asked, self._authors
        holders = range(-(-asked.topics // asked.topics_each))
        drawn = [first + int(self._draws(_OWNER, holder).integers(people)) for holder in holders]
        return [drawn[topic // asked.topics_each] for topic in range(asked.topics)]

    @property
    def _authors(self) -> tuple[int, int]:
        """The first of those who subscribe and publish, and how many they are."""
        asked = self._asked
        return (asked.relays, asked.clients) if asked.clients else (0, asked.relays)

    @cached_property
    def up(self) -> npt.NDArray[np.bool_]:
        """Who is up (participant, epoch): a two-state chain from its stationary state."""
        asked = self._asked
        if not asked.down:
            return np.ones((asked.people, asked.epochs), bool)
        leave, back = 1 / asked.up, 1 / asked.down
        moves = self._draws(_PRESENCE).random((asked.people, asked.epochs))
        state = moves[:, 0] < back / (leave + back)
        found = [state]
        for epoch in range(1, asked.epochs):
            state = np.where(state, moves[:, epoch] >= leave, moves[:, epoch] < back)
            found.append(state)
        return np.stack(found, axis=1)

    def _shard(self, topic: int, epoch: int) -> Numbers:
        """The relays of a topic's shard; both are drawn anew where trees are fresh."""
        asked = self._asked
        everyone = np.arange(asked.relays, dtype=np.int32)
        if asked.shards == 1:
            return everyone
        cut = epoch if asked.renewal == "fresh" else 0
        number = int(self._draws(_SHARD, cut, topic + 1).integers(asked.shards))
        dealt = self._draws(_SHARD, cut).permutation(everyone)
        return np.sort(dealt[number * asked.spanned : (number + 1) * asked.spanned])

    def _seats(self, topic: int, epoch: int, tree: int) -> Numbers:
        """Who sits at each place; the last entry is the root's, so that place -1 finds it."""
        asked = self._asked
        seated = self._shard(topic, epoch)
        if asked.listed:
            seated = np.delete(seated, self.owners[topic])
        drawn = self._draws(_TREE, topic, epoch if asked.renewal == "fresh" else 0, tree).permutation
        if asked.hosted:
            # It stays while shards change: a relay of a shard that it is not of has no seat, so that all fit.
            host = self._draws(_HOST, topic).choice(self._shard(topic, 0))
            below = drawn(seated[seated != host])[: asked.spanned - 1]
            return np.concatenate([[host], below, [ROOT]]).astype(np.int32)
        return np.append(drawn(seated), np.int32(ROOT)).astype(np.int32)

    @cached_property
    def _parents(self) -> Numbers:
        return np.array(self._asked.seating.parents, np.int32)

    @cached_property
    def _paths(self) -> Numbers:
        """The places from each place (row) up to the top, then -1; the last row is the root's, empty."""
        paths = self._asked.seating.paths
        found = np.full((len(paths) + 1, max(map(len, paths))), ROOT, np.int32)
        for place, path in enumerate(paths):
            found[place, : len(path)] = path
        return found

    def topics(self) -> Columns:
        """Return `topic` and `owner`."""
        return {
            "topic": np.arange(self._asked.topics, dtype=np.int32),
            "owner": np.array(self.owners, np.int32),
        }

    def seated(self) -> Iterator[Columns]:
        """Yield `topic`, `epoch`, `tree`, `owner`, `node`, `above` (-1: the root), `children`.

        Of seats of the watched and of those just below them, for each tree as often as it is installed.
        """
        asked = self._asked
        children = np.array(asked.seating.children, np.int32)
        for topic in range(asked.topics):
            for epoch in range(asked.epochs if asked.renewal != "once" else 1):
                for tree in range(asked.trees):
                    seats = self._seats(topic, epoch, tree)
                    node, above = seats[:-1], seats[self._parents]
                    keep = self._watched[node] | self._watched[above]
                    named = {"topic": topic, "epoch": epoch, "tree": tree, "owner": self.owners[topic]}
                    yield _filled(
                        {"node": node[keep], "above": above[keep], "children": children[keep]}, named
                    )

    def tops(self) -> Iterator[Columns]:
        """Yield `topic`, `owner`, `epoch`, `node`, `up`: once an epoch, watched relays try the root."""
        asked = self._asked
        for topic in range(asked.topics):
            owner = self.owners[topic]
            top = self._seats(topic, 0, 0)[: asked.seating.width]
            top = top[self._watched[top]]
            for epoch in range(asked.epochs):
                up = np.full(len(top), self.up[owner, epoch], np.int32)
                yield _filled({"node": top, "up": up}, {"topic": topic, "owner": owner, "epoch": epoch})

    def rosters(self) -> Iterator[Columns]:
        """Yield `epoch`, `listed` (a row): the epochs in which a roster is new, and who is on it."""
        asked = self._asked
        for epoch in range(asked.epochs if asked.down else 1):
            listed = np.flatnonzero(self.up[: asked.relays, epoch]).astype(np.int32)
            yield {"epoch": np.array([epoch], np.int32), "listed": listed[None, :]}

    def _published(self, topic: int, epoch: int, scan: bool) -> tuple[Numbers, Numbers, Numbers]:
        """The numbers, authors (-1: the scanner) and origins (message, at which of them) of messages."""
        asked, shard = self._asked, self._shard(topic, epoch)
        if scan:
            numbers = np.arange(len(shard), dtype=np.int32)
            return numbers, np.full(len(shard), ROOT, np.int32), shard[:, None]
        first, people = self._authors
        count = asked.messages
        if asked.one_author:
            authors = np.full(count, first + int(self._draws(_MESSAGES, topic).integers(people)))
        else:
            authors = first + self._draws(_MESSAGES, topic, epoch + 1, 1).integers(people, size=count)
        origins = self._origins(authors, shard, self._draws(_MESSAGES, topic, epoch + 1, 2))
        there = self.up[authors, epoch]
        numbers = np.arange(count, dtype=np.int32)
        return numbers[there], authors[there].astype(np.int32), origins[there].astype(np.int32)

    def _origins(self, authors: Numbers, shard: Numbers, draws: np.random.Generator) -> Numbers:
        asked = self._asked
        # Whom a draw must miss, by their places in the shard, in order; nobody has a place beyond all.
        places = np.full(asked.people, len(shard), np.int32)
        places[shard] = np.arange(len(shard), dtype=np.int32)
        missed = np.where(asked.avoiding, places[authors], len(shard))[:, None]
        found: list[Numbers] = []
        for _ in range(asked.origins):
            drawn = draws.integers(len(shard) - (missed < len(shard)).sum(axis=1))
            for one in missed.T:
                drawn = drawn + (drawn >= one)
            found.append(drawn)
            missed = np.sort(np.concatenate([missed, drawn[:, None]], axis=1), axis=1)
        return shard[np.stack(found, axis=1)]

    def publications(self, scan: bool) -> Iterator[Columns]:
        """Yield `topic`, `epoch`, `number`, `author` (-1: the scanner), `origins` (a row each)."""
        for topic in range(self._asked.topics):
            for epoch in range(1 if scan else self._asked.epochs):
                numbers, authors, origins = self._published(topic, epoch, scan)
                rows = {"number": numbers, "author": authors, "origins": origins}
                yield _filled(rows, {"topic": topic, "epoch": epoch})

    def passing(self, scan: bool) -> Iterator[Columns]:
        """Yield what watched relays get of messages: by which of the origins, at which hop, from and to whom.

        `topic`, `epoch`, `owner`, `number`, `tree`, `origin` (which of the message's), `hop`, `node`,
        `before` (-1: dropped here), `after` (-1: the root), `forwarded` (0: it was here before).
        """
        asked = self._asked
        for topic in range(asked.topics):
            for epoch in range(1 if scan else asked.epochs):
                numbers, _, origins = self._published(topic, epoch, scan)
                for tree in range(asked.trees):
                    named = {"topic": topic, "epoch": epoch, "tree": tree, "owner": self.owners[topic]}
                    seats = self._seats(topic, epoch, tree)
                    if asked.dropping == "none":
                        climbing = self._climbing(numbers, origins, seats)
                    else:
                        draws = self._draws(_DROPPING, topic, epoch + 1, tree)
                        climbing = self._stumbling(numbers, origins, seats, self._shard(topic, epoch), draws)
                    for rows in climbing:
                        yield _filled(rows, named)

    def _places(self, seats: Numbers) -> Numbers:
        places = np.full(self._asked.relays, ROOT, np.int32)  # a listed root has no place
        places[seats[:-1]] = np.arange(len(seats) - 1, dtype=np.int32)
        return places

    def _climbing(self, numbers: Numbers, origins: Numbers, seats: Numbers) -> Iterator[Columns]:
        place_of = self._places(seats)
        ways = [self._paths[place_of[origins[:, which]]] for which in range(origins.shape[1])]
        for which, way in enumerate(ways):
            met = np.zeros(way.shape, bool)
            for other in ways[:which]:
                met |= ((way[:, :, None] == other[:, None, :]) & (way >= 0)[:, :, None]).any(axis=2)
            # Ways that meet are one from there on: the first relay on both gets the message twice.
            first = np.cumsum(met, axis=1) == met
            nodes = seats[way]
            entries, hops = np.nonzero(self._watched[nodes] & first)
            up = np.concatenate([nodes, np.full((len(nodes), 1), ROOT, np.int32)], axis=1)
            yield {
                "number": numbers[entries],
                "origin": np.full(len(entries), which, np.int32),
                "hop": hops.astype(np.int32),
                "node": nodes[entries, hops],
                "before": np.where(hops > 0, nodes[entries, hops - 1], ROOT).astype(np.int32),
                "after": up[entries, hops + 1],
                "forwarded": (~met[entries, hops]).astype(np.int32),
            }

    def _stumbling(
        self,
        numbers: Numbers,
        origins: Numbers,
        seats: Numbers,
        shard: Numbers,
        draws: np.random.Generator,
    ) -> Iterator[Columns]:
        """Ways that end at the first watched relay, or go around it if it is `refusing`.

        A publisher tries another origin, `ATTEMPTS` in all; a relay hands the message to a random one, which
        takes it up the same tree (decision 12).
        """
        place_of = self._places(seats)
        refusing = self._asked.dropping == "refusing"
        rows: list[tuple[int, ...]] = []
        for number, chosen in zip(numbers.tolist(), origins.tolist(), strict=True):
            for which, origin in enumerate(chosen):
                node = origin
                for _ in range(ATTEMPTS if refusing else 1):
                    if not self._watched[node]:
                        break
                    rows.append((number, which, 0, node, ROOT, ROOT, 0))
                    node = int(shard[draws.integers(len(shard))]) if refusing else node
                hops = 0
                while not self._watched[node] and hops < LONGEST_WAY:
                    above = int(seats[self._parents[place_of[node]]]) if place_of[node] >= 0 else ROOT
                    hops += 1
                    while above != ROOT and self._watched[above]:
                        rows.append((number, which, hops, above, node, ROOT, 0))
                        if not refusing:
                            break
                        above = int(shard[draws.integers(len(shard))])
                    if above == ROOT or self._watched[above]:
                        break
                    node = above
        names = ("number", "origin", "hop", "node", "before", "after", "forwarded")
        table = np.array(rows, np.int32).reshape(-1, len(names))
        yield {name: table[:, column] for column, name in enumerate(names)}


def _filled(rows: Columns, constants: dict[str, int]) -> Columns:
    size = len(next(iter(rows.values())))
    return {**{name: np.full(size, value, np.int32) for name, value in constants.items()}, **rows}
