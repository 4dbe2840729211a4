"""Mending in the generator is the planner's, relay by relay, for the same orders."""

import random

import numpy as np
import pytest

from hushcast_analytics.generator.tree_repair import NONE, levels, loads, mended
from hushcast_protocol.overlay import tree


def as_hops(planned: tree.Tree, keys: list[bytes]) -> np.ndarray:
    number = {key: index for index, key in enumerate(keys)} | {None: len(keys)}
    return np.array(
        [number[planned.parents[key]] if key in planned.parents else NONE for key in keys], np.int32
    )


def places(keys: list[bytes], seed: bytes) -> np.ndarray:
    order = tree.shuffled(keys, seed)
    return np.array([order.index(key) for key in keys])


@pytest.mark.parametrize("relays", [1, 2, 5, 40, 120])
@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_trees_are_mended_as_the_planner_does(relays: int, depth: int) -> None:
    chance = random.Random(relays * depth)
    keys = [bytes([number]) * 32 for number in range(relays)]
    members = set(chance.sample(keys, (relays + 1) // 2))
    planned = tree.plan(members, depth, bytes(16))
    for step in range(30):
        leave = chance.choice([0.02, 0.2, 0.9])
        members = {
            key for key in keys if (chance.random() >= leave if key in members else chance.random() < 0.2)
        }
        hops, seeds = as_hops(planned, keys), (bytes([step, 1] * 8), bytes([step, 2] * 8))
        bare = tree.mend(planned, members, (), seeds[0])
        hosts = [key for key in planned.parents if key in members]
        newcomers = [key for key in members if key not in planned.parents]
        planned = tree.graft(bare, newcomers, hosts, depth, seeds[1])
        there = np.array([key in members for key in keys])
        found = mended(hops, relays, there, there, depth, *(places(keys, seed) for seed in seeds))
        assert found.tolist() == as_hops(planned, keys).tolist()
        assert levels(found, relays).tolist() == [
            planned.path_length(key) if key in planned.parents else 0 for key in keys
        ]
        assert loads(found).tolist() == [len(planned.children.get(key, ())) for key in keys]


@pytest.mark.parametrize("relays", [5, 40])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_who_is_missing_for_a_while_keeps_its_seat_there_too(relays: int, depth: int) -> None:
    chance = random.Random(relays * depth)
    keys = [bytes([number]) * 32 for number in range(relays)]
    planned = tree.plan(keys[: relays // 2], depth, bytes(16))
    for step in range(30):
        listed = {key for key in keys if chance.random() < 0.5}
        kept = listed | {key for key in keys if chance.random() < 0.7}
        hops, seeds = as_hops(planned, keys), (bytes([step, 1] * 8), bytes([step, 2] * 8))
        bare = tree.mend(planned, kept, (), seeds[0])
        newcomers = listed - planned.parents.keys()
        hosts, spare = bare.parents.keys() & listed, bare.parents.keys() - listed
        planned = tree.graft(bare, newcomers, hosts, depth, seeds[1], spare)
        marks = (np.array([key in some for key in keys]) for some in (listed, kept))
        found = mended(hops, relays, *marks, depth, *(places(keys, seed) for seed in seeds))
        assert found.tolist() == as_hops(planned, keys).tolist()
