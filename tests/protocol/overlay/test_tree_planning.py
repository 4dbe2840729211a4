"""The tree planner: spans, depth, balance, chance and grafts."""

import itertools
import math

import pytest
from core_examples import properties
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.overlay.tree import (
    LEAST_LEAVING,
    MOST_LEAVING,
    Tree,
    branching,
    graft,
    leaving,
    mend,
    plan,
    shuffled,
    strain,
)

RELAYS = [number.to_bytes(32, "big") for number in range(600)]
seeds = st.binary(min_size=16, max_size=64)
counts = st.integers(0, 300)
depths = st.integers(1, 6)


def levels(tree: Tree) -> list[list[bytes | None]]:
    """The root, then the relays of each level."""
    found: list[list[bytes | None]] = [[None]]
    while below := [child for seat in found[-1] for child in tree.children.get(seat, ())]:
        found.append(below)
    return found


@pytest.mark.slow
@properties(200)
@given(counts, depths, seeds)
def test_a_tree_spans_all_relays_within_its_depth(count, depth, seed):
    relays = RELAYS[:count]
    tree = plan(relays, depth, seed)
    assert set(tree.parents) == set(relays)
    reached = list(itertools.chain(*levels(tree)[1:]))
    assert sorted(reached) == relays
    assert all(1 <= tree.path_length(relay) <= depth for relay in relays)
    for distance, level in enumerate(levels(tree)):
        assert all(tree.path_length(relay) == distance for relay in level if relay is not None)


@pytest.mark.slow
@properties(200)
@given(counts, depths, seeds)
def test_a_tree_is_balanced(count, depth, seed):
    tree = plan(RELAYS[:count], depth, seed)
    width = branching(count, depth)
    for level in levels(tree):
        sizes = [len(tree.children.get(seat, ())) for seat in level]
        assert max(sizes) - min(sizes) <= 1
        assert max(sizes) <= width
    for distance, level in enumerate(levels(tree)[:-1]):
        assert len(level) == width**distance


@properties(100)
@given(st.integers(1, 300), depths)
def test_branching_is_the_smallest_that_suffices(count, depth):
    def seats(width: int) -> int:
        return sum(width**level for level in range(1, depth + 1))

    width = branching(count, depth)
    assert seats(width) >= count
    assert width == 1 or seats(width - 1) < count


@pytest.mark.parametrize(
    ("relays", "depth", "width"),
    [
        (500, 3, 8),  # 7 + 49 + 343 = 399 < 500 <= 8 + 64 + 512
        (500, 2, 22),  # 21 + 441 = 462 < 500 <= 22 + 484
        (500, 1, 500),
        (12, 2, 3),  # 2 + 4 < 12 <= 3 + 9
        (2000, 2, 45),  # 44 + 1936 = 1980 < 2000
        (1, 3, 1),
    ],
)
def test_known_branching(relays, depth, width):
    assert branching(relays, depth) == width


@properties(50)
@given(counts, depths, seeds)
def test_a_tree_replays_from_its_seed(count, depth, seed):
    assert plan(RELAYS[:count], depth, seed).parents == plan(RELAYS[:count][::-1], depth, seed).parents


@properties(50)
@given(seeds, seeds)
def test_other_seeds_give_other_trees(one, other):
    first, second = (plan(RELAYS[:50], 3, seed).parents for seed in (one, other))
    assert (first == second) == (one == other)


def test_the_length_of_a_seed_counts():
    assert len({tuple(shuffled(RELAYS[:20], bytes(length))) for length in (16, 17, 32, 64)}) == 4


def test_depth_is_at_least_one():
    with pytest.raises(ValueError, match="at least one level"):
        plan(RELAYS[:3], 0, bytes(16))


def test_positions_are_uniform():
    """Chi-square with fixed seeds: each of 12 relays on each of 12 places in 6,000 trees.

    The 132 independent cells have 121 degrees of freedom: mean 121, standard deviation 15.6.
    """
    relays, trees = RELAYS[:12], 6000
    counts: dict[tuple[bytes, int], int] = dict.fromkeys(itertools.product(relays, range(12)), 0)
    for number in range(trees):
        tree = plan(relays, 2, number.to_bytes(32, "big"))
        for place, relay in enumerate(tree.parents):
            counts[relay, place] += 1
    expected = trees / 12
    chi_square = sum((count - expected) ** 2 / expected for count in counts.values())
    assert 121 - 5 * 15.6 < chi_square < 121 + 5 * 15.6


@pytest.mark.slow
def test_next_hops_are_uniform():
    """The next hop of one relay in 20,000 trees is any other equally often: 11 cells, mean 10, sd 4.5."""
    relays = RELAYS[:12]
    above: dict[bytes | None, int] = {}
    for number in range(20_000):
        parent = plan(relays, 2, number.to_bytes(32, "big")).parents[relays[0]]
        above[parent] = above.get(parent, 0) + 1
    assert above.pop(None) / 20_000 == pytest.approx(3 / 12, abs=5 * 0.0031)
    expected = sum(above.values()) / 11
    assert sum((above[relay] - expected) ** 2 / expected for relay in relays[1:]) < 10 + 5 * 4.5


@pytest.mark.slow
@properties(150)
@given(st.integers(0, 150), st.integers(0, 60), depths, seeds)
def test_grafts_keep_seats_and_depth(count, newcomers, depth, seed):
    tree = plan(RELAYS[:count], depth, seed)
    grown = graft(tree, RELAYS[count : count + newcomers], tree.parents, depth, seed)
    assert set(grown.parents) == set(RELAYS[: count + newcomers])
    assert all(grown.parents[relay] == parent for relay, parent in tree.parents.items())
    assert all(1 <= grown.path_length(relay) <= depth for relay in grown.parents)
    width = branching(count + newcomers, depth)
    assert all(len(below) <= width for below in grown.children.values())
    late = set(RELAYS[count : count + newcomers])
    if any(newcomer in grown.children for newcomer in late):  # nowhere else was room
        full = {relay for relay in tree.parents if tree.path_length(relay) < depth}
        assert all(len(grown.children.get(relay, ())) == width for relay in [None, *full])
    for newcomer in late:
        assert set(grown.children.get(newcomer, ())) <= late
    assert tree.parents == plan(RELAYS[:count], depth, seed).parents


@properties(50)
@given(st.integers(1, 100), st.integers(1, 60), st.integers(2, 6), seeds)
def test_grafts_go_where_there_is_most_room(count, newcomers, depth, seed):
    tree = plan(RELAYS[:count], depth, seed)
    hosts = [relay for relay in tree.parents if tree.path_length(relay) < depth][::2]
    grown = graft(tree, RELAYS[count : count + newcomers], hosts, depth, seed)
    before, after = ([len(which.children.get(host, ())) for host in hosts] for which in (tree, grown))
    gaining = [now for was, now in zip(before, after, strict=True) if now > was]
    full = min(after) == branching(count + newcomers, depth)
    assert full or max(gaining) <= min(after) + 1


@properties(50)
@given(st.integers(0, 150), st.integers(0, 60), depths, seeds)
def test_grafts_replay_from_their_seed(count, newcomers, depth, seed):
    tree = plan(RELAYS[:count], depth, seed)
    late, hosts = RELAYS[count : count + newcomers], RELAYS[:count]
    assert (
        graft(tree, late, hosts, depth, seed).parents
        == graft(tree, late[::-1], hosts[::-1], depth, seed).parents
    )


@properties(50)
@given(st.integers(1, 100), st.integers(1, 20), depths, seeds, st.data())
def test_grafts_go_under_hosts_or_the_root(count, newcomers, depth, seed, data):
    tree = plan(RELAYS[:count], depth, seed)
    hosts = set(data.draw(st.lists(st.sampled_from(RELAYS[:count]))))
    grown = graft(tree, RELAYS[count : count + newcomers], hosts, depth, seed)
    possible = {host for host in hosts if tree.path_length(host) < depth}
    width = branching(count + newcomers, depth)
    late = set(RELAYS[count : count + newcomers])
    elsewhere = {grown.parents[newcomer] for newcomer in late & grown.parents.keys()} - possible
    full = width <= min((len(grown.children.get(host, ())) for host in possible), default=width)
    assert elsewhere <= late | {None}
    assert full or not elsewhere
    assert len(grown.children.get(None, ())) <= width
    assert late <= grown.parents.keys() or full


@pytest.mark.slow
@properties(100)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(2, 4), seeds, st.data())
def test_nobody_gets_more_children_than_planned(count, newcomers, depth, seed, data):
    """Of a tree in any state: all under one relay, or under the root."""
    present = data.draw(st.sets(st.sampled_from(RELAYS[:count]), min_size=1))
    tree = mend(plan(RELAYS[:count], depth, seed), present, (), seed)
    grown = graft(tree, RELAYS[count : count + newcomers], present, depth, seed)
    width = branching(len(tree.parents) + newcomers, depth)
    for host, below in grown.children.items():
        assert len(below) <= max(width, len(tree.children.get(host, ())))
    assert all(grown.path_length(relay) <= depth for relay in grown.parents)


def test_one_relay_that_stayed_does_not_carry_all_who_return():
    tree = Tree({RELAYS[0]: None})
    back = set(RELAYS[1:24])
    for epoch in range(2):
        newcomers = back - tree.parents.keys()
        tree = graft(tree, newcomers, list(tree.parents), 2, bytes([epoch] * 16))
    assert tree.parents.keys() == back | {RELAYS[0]}
    assert strain(tree, 2) == 1
    assert len(tree.children[None]) >= 4


def test_newcomers_use_spare_relays_last():
    tree = Tree({b"host": None, b"spare": None})
    grown = graft(tree, [b"1", b"2", b"3", b"4"], [b"host"], 2, bytes(16), [b"spare"])
    assert len(grown.children[b"host"]) == 2
    assert len(grown.children[b"spare"]) == 2
    assert set(grown.parents) == {b"host", b"spare", b"1", b"2", b"3", b"4"}


@pytest.mark.slow
@properties(100)
@given(st.integers(0, 200), depths, seeds)
def test_a_planned_tree_has_no_strain(count, depth, seed):
    assert strain(plan(RELAYS[:count], depth, seed), depth) == 1


def test_strain_tells_trees_that_are_narrow_wide_or_too_deep():
    several = RELAYS[1:24]
    under_one = Tree({RELAYS[0]: None} | dict.fromkeys(several, RELAYS[0]))
    assert strain(under_one, 2) == 5  # of five tops it has one
    assert strain(Tree(dict.fromkeys(several)), 2) == len(several) / 5
    assert strain(Tree({b"a": None, b"b": b"a", b"c": b"b"}), 2) == math.inf


@pytest.mark.slow
@properties(100)
@given(st.integers(0, 120), depths, seeds, st.data())
def test_only_some_leave_at_once_and_in_the_end_all(count, depth, seed, data):
    tree = plan(RELAYS[:count], depth, seed)
    kept = data.draw(st.sets(st.sampled_from(RELAYS[: count or 1])))
    gone = tree.parents.keys() - kept
    now = leaving(tree, kept, seed)
    assert now <= gone
    assert len(now) == min(len(gone), max(LEAST_LEAVING, count // MOST_LEAVING))


@pytest.mark.slow
@properties(100)
@given(st.integers(0, 150), depths, seeds, st.data())
def test_a_part_of_a_tree_keeps_the_ways_inside_it(count, depth, seed, data):
    tree = plan(RELAYS[:count], depth, seed)
    kept = set(data.draw(st.lists(st.sampled_from(RELAYS[: count or 1]))))
    part = tree.only(kept)
    assert set(part.parents) == kept & set(tree.parents)
    for relay, parent in part.parents.items():
        assert parent == (tree.parents[relay] if tree.parents[relay] in kept else None)


def test_the_order_of_a_seed_does_not_change():
    """Subscribers keep seeds over restarts: the same seed must give the same seats."""
    assert [relay[-1] for relay in shuffled(RELAYS[:10], bytes(range(32)))] == [4, 5, 8, 1, 6, 3, 9, 7, 2, 0]


@pytest.mark.slow
@properties(200)
@given(st.integers(1, 120), depths, seeds, st.data())
def test_mending_replaces_who_left_and_frees_who_is_shaky(count, depth, seed, data):
    relays = [number.to_bytes(4, "big") for number in range(count)]
    tree = plan(relays, depth, seed)
    left = data.draw(st.sets(st.sampled_from(relays)))
    present = [relay for relay in relays if relay not in left]
    shaky = set(data.draw(st.sets(st.sampled_from(relays)))) - left
    mended = mend(tree, present, shaky, seed)
    assert set(mended.parents) == set(present)
    assert all(mended.path_length(relay) <= depth for relay in present)
    firm_leaves = [
        r for r in tree.parents if r in mended.parents and r not in shaky and not tree.children.get(r)
    ]
    seats = [r for r in tree.parents if tree.children.get(r) and (r in left or r in shaky)]
    if len(firm_leaves) >= len(seats):
        assert not any(mended.children.get(relay) for relay in shaky)


@pytest.mark.slow
@properties(100)
@given(st.integers(30, 120), st.integers(2, 3), seeds, st.data())
def test_mending_moves_no_more_seats_than_it_must(count, depth, seed, data):
    relays = [number.to_bytes(4, "big") for number in range(count)]
    tree = plan(relays, depth, seed)
    gone = data.draw(st.sampled_from(relays))
    mended = mend(tree, [relay for relay in relays if relay != gone], (), seed)
    moved = {relay for relay in mended.parents if mended.parents[relay] != tree.parents[relay]}
    below = set(tree.children.get(gone, ()))
    assert moved >= below - moved  # all that stood under it have a new next hop, one of them perhaps its seat
    assert len(moved) <= len(below) + 1


def test_mending_without_a_leaf_left_brings_children_to_the_next_hop():
    tree = Tree({b"a": None, b"b": b"a", b"c": b"b"})
    assert mend(tree, [b"a", b"c"], [b"c"], b"s" * 16).parents == {b"a": None, b"c": b"a"}


@properties(50)
@given(st.integers(1, 100), depths, seeds)
def test_the_way_of_a_relay_is_as_long_as_its_path(count, depth, seed):
    tree = plan([number.to_bytes(4, "big") for number in range(count)], depth, seed)
    for relay in tree.parents:
        way = tree.way(relay)
        assert (way[0], len(way)) == (relay, tree.path_length(relay))
        assert tree.parents[way[-1]] is None
        assert all(tree.parents[one] == above for one, above in itertools.pairwise(way))


@properties(30)
@given(st.integers(1, 60), depths, seeds)
def test_a_whole_tree_needs_no_mending(count, depth, seed):
    relays = [number.to_bytes(4, "big") for number in range(count)]
    tree = plan(relays, depth, seed)
    assert mend(tree, relays, (), seed) == tree


@pytest.mark.parametrize(
    "parents", [{b"a": b"a"}, {b"a": b"b", b"b": b"a"}, {b"a": None, b"b": b"c", b"c": b"b"}, {b"a": b"c"}]
)
def test_ways_that_do_not_end_at_the_root_make_no_tree(parents: dict[bytes, bytes | None]) -> None:
    assert not Tree(parents).is_whole
    assert Tree(parents).only(()).is_whole
    assert plan(RELAYS[:40], 3, bytes(16)).is_whole
