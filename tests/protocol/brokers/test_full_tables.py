"""Tables I to V of the paper (section V, C and D), line by line, on the tree of figure 2: XOR, two layers.

A1, A2 and B1 ask for w; A3, A4 and A5 for w'. Keys are updated for each item (V-E), so that of B1 and B4 is
another one on what B1 asks for itself (the first) and on what it passes on (the second): the paper has the
same on both where it compares them (V-C), and here they need a factor, as two of any other keys do.
"""

from __future__ import annotations

import pytest
from full_world import FIGURE_2, World

from hushcast_protocol.brokers.full.comparable_item import ComparableItem
from hushcast_protocol.brokers.full.group_action import PADS
from hushcast_protocol.brokers.full.item_labels import ItemLabel
from hushcast_protocol.brokers.full.layered_word import LayeredWord

W, OTHER = b"w".ljust(32, b"\x00"), b"w'".ljust(32, b"\x00")


def xor(*parts: bytes) -> bytes:
    found = bytes(32)
    for part in parts:
        found = bytes(a ^ b for a, b in zip(found, part, strict=True))
    return found


@pytest.fixture
def world() -> World:
    found = World(FIGURE_2, PADS, 2)
    for name in ("A1", "A2", "B1"):
        found.want(name, b"w")
    for name in ("A3", "A4", "A5"):
        found.want(name, b"w'")
    found.settle()
    return found


def sent(world: World, name: str) -> list[ComparableItem]:
    """Return what a node has advertised, as its parent reads it."""
    node = world.nodes[name]
    return list(world.nodes[world.parents[name]].rows.of(node.keys.public).values())


def shown(item: LayeredWord, world: World) -> tuple[bytes, set[tuple[str, str]]]:
    return item.element, {(world.names[one.owner], world.names[one.target]) for one in item.layers}


def test_table_1_aggregation_at_b1(world: World) -> None:
    k = world.key
    b1 = world.nodes["B1"]
    # Receiving advertisements.
    (first,), (second,) = sent(world, "A1"), sent(world, "A2")
    assert shown(first.item, world) == (xor(W, k("B1", "A1"), k("B3", "A1")), {("A1", "B1"), ("A1", "B3")})
    assert shown(second.item, world) == (xor(W, k("B1", "A2"), k("B3", "A2")), {("A2", "B1"), ("A2", "B3")})
    # Advertisement processing.
    assert first.element == xor(W, k("B3", "A1"))
    assert second.element == xor(W, k("B3", "A2"))
    # Equivalence check: the two factors give the secret that the paper has for the two, and nothing else.
    secret = xor(b1.factors[first.path].route.reveal(), b1.factors[second.path].route.reveal())
    assert secret == xor(k("A1", "B3"), k("A2", "B3"))
    assert xor(first.element, second.element) == secret
    # Forwarding table updating.
    (row,) = b1.rows.rows(world.day)
    assert [(world.names[child], read.element) for (child, _), read in row.members.items()] == [
        ("A1", xor(W, k("B3", "A1"))),
        ("A2", xor(W, k("B3", "A2"))),
    ]
    # Advertisement forwarding.
    (up,) = [one for one in sent(world, "B1") if one.item not in b1.own.values()]
    assert shown(up.item, world) == (xor(W, k("B3", "A1"), k("B1", "B4", 1)), {("A1", "B3"), ("B1", "B4")})


def test_table_2_propagation_from_a1_to_c() -> None:
    world = World(FIGURE_2, PADS, 2)
    world.want("A1", b"w")
    world.settle()
    k = world.key
    steps = [("A1", ("B1", "A1"), ("B3", "A1")), ("B1", ("B3", "A1"), ("B1", "B4"))]
    steps += [("B3", ("B1", "B4"), ("B3", "C")), ("B4", ("B3", "C"), ("B4", "C"))]
    for name, *pairs in steps:
        (read,) = sent(world, name)
        layers = {(one, other) for one, other in pairs}
        assert read.item.element == xor(W, *(k(*pair) for pair in pairs))
        assert {frozenset(pair) for pair in layers} == {
            frozenset((world.names[one.owner], world.names[one.target])) for one in read.item.layers
        }
        left = [pair for pair in pairs if world.parents[name] not in pair]
        assert read.element == xor(W, *(k(*pair) for pair in left))
    assert sent(world, "B4")[0].element == W


def test_table_3_forwarding_table_of_b3(world: World) -> None:
    def members(number: int) -> list[tuple[str, str]]:
        return sorted(
            (world.names[child], world.names[read.own[0].owner])
            for (child, _), read in rows[number].members.items()
        )

    rows = world.nodes["B3"].rows.rows(world.day)
    table = {row.element: members(number) for number, row in enumerate(rows)}
    assert table == {
        # → B1 and B1(A1): next hop, and the hop after it where the word is not its own.
        xor(W, world.key("B1", "B4")): [("B1", "A1"), ("B1", "B1")],
        # → B2(A3)
        xor(OTHER, world.key("B2", "B4")): [("B2", "A3")],
    }


def message(world: World, name: str, label: ItemLabel) -> tuple[bytes, bytes]:
    """Return the control part and the key of what went to a node under a label."""
    node = world.nodes[name]
    held = {item.name: item for item in node.shown.values()}
    return held[label.name].element, label.content


def test_table_4_look_up_and_forwarding_at_b3(world: World) -> None:
    k, kk = world.key, world.content_key
    assert world.publish(b"w").keys() == {"A1", "A2", "B1"}
    key = world.nodes["C"].labels[0].content  # k_C
    # Receiving of content.
    (received,) = world.nodes["B3"].labels
    control, content = message(world, "B3", received)
    assert control == xor(W, k("B3", "C"), k("B4", "B1"))
    assert content == xor(key, kk("B3", "C"), kk("B4", "B1"))
    # Message processing, and secure look-up with the row of table III.
    processed = xor(control, k("B3", "C"))
    assert processed == xor(W, k("B4", "B1"))
    assert [processed] == [row.element for row in world.nodes["B3"].rows.rows(world.day)][:1]
    # Construction and forwarding of messages: two for B1, of one row.
    assert {message(world, "B1", label) for label in world.nodes["B1"].labels} == {
        (xor(W, k("B4", "B1", 1), k("B3", "A1")), xor(key, kk("B4", "B1", 1), kk("B3", "A1"))),
        (xor(W, k("B4", "B1"), k("B3", "B1")), xor(key, kk("B4", "B1"), kk("B3", "B1"))),
    }


def test_table_5_evolution_on_the_path_to_a1(world: World) -> None:
    k, kk = world.key, world.content_key
    (inside,) = world.publish(b"w", text=b"P")["A1"]
    key = world.nodes["C"].labels[0].content
    steps = [("B4", ("B3", "C"), ("B4", "C")), ("B3", ("B3", "C"), ("B4", "B1"))]
    steps += [("B1", ("B4", "B1", 1), ("B3", "A1")), ("A1", ("B3", "A1"), ("B1", "A1"))]
    for name, *pairs in steps:
        got = {message(world, name, label) for label in world.nodes[name].labels}
        assert (xor(W, *(k(*pair) for pair in pairs)), xor(key, *(kk(*pair) for pair in pairs))) in got
    # A1 has [w; k_C; P].
    assert (inside.tokens, inside.body[:1]) == ((b"w",), b"P")


def test_a_sibling_in_one_row_opens_it_which_takes_factors_of_the_second_keys(world: World) -> None:
    world.publish(b"w")
    key = world.nodes["C"].labels[0].content
    (label,) = world.nodes["A2"].labels
    assert label.content == xor(key, world.content_key("A2", "B1"), world.content_key("A2", "B3"))


def test_a_node_with_a_childs_interest_is_not_told(world: World) -> None:
    """B1 sends its own word beside its children's; it is B3 that puts both on a row."""
    assert len(sent(world, "B1")) == 2
    (row,) = world.nodes["B1"].rows.rows(world.day)
    assert {world.names[child] for child, _ in row.members} == {"A1", "A2"}
