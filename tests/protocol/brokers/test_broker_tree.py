"""The tree that the root signs: one parent each, no loops, nothing that is not below the root."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import msgspec
import pytest

from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, sign
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.versions.network_wire import BEGINNING
from hushcast_protocol.base.wire import encode
from hushcast_protocol.brokers.broker_tree import (
    MAX_CHILDREN,
    MAX_LEVELS,
    BrokerPosition,
    BrokerRole,
    TreeBody,
    check_newer,
    check_tree,
    sign_tree,
)
from hushcast_protocol.brokers.network import BrokersNetwork

ROOT = Seed(bytes([1]) * 32)
NETWORK = BrokersNetwork("trees", "clear", 3600, ROOT.public())


def seat(number: int, role: BrokerRole = "inner", parent: int | None = 1) -> BrokerPosition:
    """The seat of the broker with this number; the root is 1."""
    key = keyed(number)
    return BrokerPosition(key, memory_address(key), role, None if parent is None else keyed(parent))


def keyed(number: int) -> bytes:
    return Seed(number.to_bytes(32, "little") if number > 1 else bytes([1]) * 32).public()


TREE = (seat(1, "root", None), seat(2), seat(3), seat(4, "edge", 2), seat(5, "edge", 3), seat(6, "edge", 1))


def unchecked(*seats: BrokerPosition) -> Signed:
    """A tree that the root signed without looking."""
    return sign(ROOT, SignaturePurpose.BROKER_TREE, TreeBody(NETWORK.id, 1, seats))


def test_a_tree_tells_who_is_above_and_below() -> None:
    tree = check_tree(sign_tree(ROOT, NETWORK, 7, TREE), NETWORK)
    assert tree.version == 7
    assert {broker.key for broker in tree.edges} == {keyed(4), keyed(5), keyed(6)}
    assert {broker.key for broker in tree.children(keyed(1))} == {keyed(2), keyed(3), keyed(6)}
    assert [broker.key for broker in tree.above(keyed(4))] == [keyed(2), keyed(1)]
    assert tree.above(keyed(1)) == []
    assert [tree.brokers[keyed(number)].level for number in (1, 2, 4, 6)] == [0, 1, 2, 1]


@pytest.mark.parametrize(
    ("seats", "told"),
    [
        ((*TREE, seat(4, "edge", 3)), "second parent"),
        (TREE[1:], "not in its tree"),
        ((*TREE, seat(7, "root", None)), "alone has no parent"),
        ((*TREE, seat(7, "inner", None)), "alone has no parent"),
        ((*TREE, seat(7, "edge", 9)), "parent is not in the tree"),
        ((*TREE, seat(7, "edge", 4)), "edge broker"),
        ((*TREE, seat(7, "inner", 8), seat(8, "inner", 7)), "loop"),
        (
            (*TREE, *(seat(10 + at, parent=10 + at - 1 if at else 1) for at in range(MAX_LEVELS + 1))),
            "more than",
        ),
        ((TREE[0], *(seat(10 + at) for at in range(MAX_CHILDREN + 1))), "below it"),
        ((*TREE, msgspec.structs.replace(seat(7), address=TREE[1].address)), "same address"),
    ],
)
def test_what_is_no_tree_is_refused_by_who_signs_and_by_who_reads(
    seats: tuple[BrokerPosition, ...], told: str
) -> None:
    with pytest.raises(DecodeError, match=told):
        sign_tree(ROOT, NETWORK, 1, seats)
    with pytest.raises(DecodeError, match=told):
        check_tree(unchecked(*seats), NETWORK)


def test_a_tree_of_another_network_or_another_key_is_refused() -> None:
    with pytest.raises(DecodeError, match="another network"):
        check_tree(sign_tree(ROOT, NETWORK, 1, TREE), msgspec.structs.replace(NETWORK, name="other"))
    signed = sign_tree(ROOT, NETWORK, 1, TREE)
    with pytest.raises(AuthenticationError):
        check_tree(signed, msgspec.structs.replace(NETWORK, root=keyed(2)))


def test_newer_trees_are_taken_older_ones_are_not_and_two_of_one_version_are_evidence() -> None:
    first, second = (check_tree(sign_tree(ROOT, NETWORK, version, TREE), NETWORK) for version in (1, 2))
    assert check_newer(first, None)
    assert check_newer(second, first)
    assert not check_newer(first, second)
    assert not check_newer(second, replace(second))
    other = check_tree(sign_tree(ROOT, NETWORK, 2, TREE[:-1]), NETWORK)
    with pytest.raises(AuthenticationError, match="two trees"):
        check_newer(other, second)


def test_any_tree_survives_its_encoding() -> None:
    random = Random(3)
    for _ in range(50):
        seats: list[Any] = [seat(1, "root", None)]
        for number in range(2, random.randint(2, 40)):
            above = random.choice([one for one in seats[:8] if one.role != "edge"])  # not too deep
            role: BrokerRole = random.choice(("inner", "edge"))
            seats.append(msgspec.structs.replace(seat(number, role), parent=above.key))
        tree = check_tree(sign_tree(ROOT, NETWORK, 1, seats), NETWORK)
        assert {broker.key: broker.parent for broker in tree.brokers.values()} == {
            one.key: one.parent for one in seats
        }


def test_a_tree_that_has_grown_is_read_and_handed_on_as_it_came() -> None:
    """By who is too old for what was added: its root may say there which wire comes."""
    body = msgspec.msgpack.decode(encode(TreeBody(NETWORK.id, 7, TREE)))
    tag, network, version, seats, wire, kept = body
    more = kept, ["a kind to come", 2]
    grown = [tag, network, version, [[*one, [1, 2]] for one in seats], [*wire, 3], *more]
    signed = sign(ROOT, SignaturePurpose.BROKER_TREE, grown)
    tree = check_tree(signed, NETWORK)
    assert tree.wire == BEGINNING
    before = check_tree(sign(ROOT, SignaturePurpose.BROKER_TREE, grown[:4]), NETWORK)
    assert before.wire == BEGINNING, "as no tree said it yet"
    assert (tree.version, len(tree.brokers), tree.signed) == (7, len(TREE), signed)
