"""Any tree, any order of what comes and goes: no publication misses who asked, and tables are as small."""

from __future__ import annotations

from random import Random

import pytest
from full_world import World, word_of

from hushcast_protocol.brokers.full import day_rows
from hushcast_protocol.brokers.full.group_action import GROUP, PADS, GroupAction

WORDS = [word_of(number) for number in range(3)]


class Play:
    """Random moves of brokers whose frames and factors may be on their way at any time."""

    def __init__(self, random: Random, action: GroupAction, nodes: int) -> None:
        self.random = random
        parents = {f"n{at}": f"n{max(0, at - 1 - random.randrange(4))}" for at in range(1, nodes)}
        self.world = World(parents, action, random.randint(2, 4), aggregates=random.random() < 0.8)
        self.names = list(parents)
        self.settled: set[tuple[str, bytes]] = set()
        """Who asks for what that no message may be missed of."""

    def run(self, moves: int) -> None:
        kinds = [self.want, self.unwant, self.say, self.hear, self.learn, self.restart, self.attach_anew]
        kinds += [self.settle, self.publish]
        for kind in self.random.choices(kinds, (9, 6, 9, 12, 9, 3, 2, 4, 12), k=moves):
            kind()
            self.check_tables()
        self.settle(learn=True)
        self.publish()

    def choose(self) -> str:
        return self.random.choice(self.names)

    def want(self) -> None:
        word = self.random.choice(WORDS)
        for name in self.random.sample(self.names, self.random.randint(1, len(self.names))):
            if word not in self.world.nodes[name].own:
                self.world.want(name, word)

    def unwant(self) -> None:
        word = self.random.choice(WORDS)
        for name in self.random.sample(self.names, self.random.randint(1, len(self.names))):
            if word in self.world.nodes[name].own:
                self.world.unwant(name, word)
                self.settled.discard((name, word))

    def say(self) -> None:
        for _ in range(3):
            self.world.say(self.choose())

    def hear(self) -> None:
        for _ in range(4):
            waiting = [name for name in self.names if self.world.nodes[name].up]
            if waiting:
                self.world.hear(self.random.choice(waiting))

    def learn(self) -> None:
        missing = [(name, *path) for name in self.names for path in self.world.nodes[name].rows.missing()]
        for name, day, path in self.random.sample(missing, min(3, len(missing))):
            self.world.learn(name, day, path, self.random.choice((1, 2, None)))

    def restart(self) -> None:
        self.world.restart(self.choose())

    def attach_anew(self) -> None:
        name = self.choose()
        self.world.attach_anew(name)
        self.settled = {one for one in self.settled if name not in (one[0], *self.world.path(one[0]))}

    def settle(self, *, learn: bool | None = None) -> None:
        learn = self.random.random() < 0.5 if learn is None else learn
        self.world.settle(learn=learn)
        self.settled = {(name, word) for name in self.names for word in self.world.nodes[name].own}
        for name, node in self.world.nodes.items():
            below = [one for one in self.names if name in self.world.path(one)]
            words = {word for one in below for word in self.world.nodes[one].own}
            rows = node.rows.rows(self.world.day)
            assert len(rows) >= len(words)
            if (learn and self.world.aggregates) or name == self.world.root:
                assert len(rows) == len(words)
            if name in self.world.parents:
                parent = self.world.nodes[self.world.parents[name]]
                held = parent.rows.of(node.keys.public)
                assert held.keys() == node.shown.keys()
                assert len(held) == len(rows) + len(node.own)

    def publish(self) -> None:
        words = self.random.sample(WORDS, self.random.randint(1, len(WORDS)))
        got = self.world.publish(*words)
        assert {name for name, word in self.settled if word in words} <= got.keys()
        assert got.keys() <= self.world.interested(*words)
        for name, found in got.items():
            assert all(set(one.tokens) <= self.world.nodes[name].own.keys() & set(words) for one in found)

    def check_tables(self) -> None:
        for node in self.world.nodes.values():
            rows = node.rows.rows(self.world.day)
            assert all(row.members for row in rows)
            assert sum(len(row.members) for row in rows) == len(node.rows)


@pytest.mark.parametrize("seed", range(40))
def test_nothing_is_missed_whoever_comes_and_goes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(day_rows, "_COMPARED_AT_ONCE", 1)
    Play(Random(seed), PADS, 9).run(60)


@pytest.mark.parametrize("seed", range(5))
def test_nor_in_the_group(seed: int) -> None:
    Play(Random(seed), GROUP, 7).run(40)
