"""Keys of layers: both ends agree, each day anew, and nobody is forced into a key that all know."""

from __future__ import annotations

import pytest
from broker_examples import EDGE, INNER, ROOT, SEATS
from broker_examples import NETWORK as BROKERS_NETWORK
from broker_examples import tree as broker_tree
from full_world import DAY, NETWORK, key_of

from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.key_agreement import agreement_key, agreement_public, shared_secret
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.brokers.broker_tree import BrokerPosition, check_tree, sign_tree
from hushcast_protocol.brokers.full import layer_keys as module
from hushcast_protocol.brokers.full.group_action import GROUP, PADS, GroupAction
from hushcast_protocol.brokers.full.layer_keys import Keyring, agree
from hushcast_protocol.brokers.full.layer_positions import LayerPositions
from hushcast_protocol.brokers.full.word_holder import WordHolder

ONE, OTHER = key_of("one"), key_of("other")
LOW_ORDER = [bytes(32), b"\x01" + bytes(31)]


def test_the_public_part_of_a_seats_key_is_what_all_make_of_the_seat() -> None:
    for number in range(4):
        seed = Seed(bytes([number]) * 32)
        assert agreement_key(seed).public() == agreement_public(seed.public())
    one, other = Seed(b"1" * 32), Seed(b"2" * 32)
    assert shared_secret(agreement_key(one), agreement_public(other.public())) == shared_secret(
        agreement_key(other), agreement_public(one.public())
    )


@pytest.mark.parametrize("public", [bytes(32), b"\x01" + bytes(31), b"\xff" * 32])
def test_a_seat_that_is_no_point_has_no_key(public: bytes) -> None:
    with pytest.raises(AuthenticationError):
        agreement_public(public)


@pytest.mark.parametrize("public", LOW_ORDER)
def test_a_key_of_low_order_is_refused(public: bytes) -> None:
    with pytest.raises(AuthenticationError):
        agree(GROUP, ONE, public, NETWORK, DAY)


@pytest.mark.parametrize("action", [PADS, GROUP], ids=["pads", "group"])
def test_two_ends_agree_on_two_keys_for_each_day_and_network(action: GroupAction) -> None:
    mine = agree(action, ONE, OTHER.public(), NETWORK, DAY)
    assert mine == agree(action, OTHER, ONE.public(), NETWORK, DAY)
    others = [
        agree(action, ONE, OTHER.public(), NETWORK, DAY + 1),
        agree(action, ONE, OTHER.public(), bytes(32), DAY),
        agree(action, ONE, key_of("third").public(), NETWORK, DAY),
    ]
    found = [mine, *others]
    assert len({key.reveal() for pair in found for key in (pair.route, pair.content)}) == 2 * len(found)


def test_brokers_stand_in_layers_where_they_stand_in_the_tree() -> None:
    tree = check_tree(broker_tree().tree, BROKERS_NETWORK)
    places = LayerPositions(tree)
    root, inner, edge = (agreement_key(seed).public() for seed in (ROOT, INNER, EDGE))
    assert [places.key(seed.public()) for seed in (ROOT, INNER, EDGE)] == [root, inner, edge]
    assert [places.seat(key) for key in (root, inner, edge)] == [one.public() for one in (ROOT, INNER, EDGE)]
    assert places.seat(ONE.public()) is None
    assert places.above(ROOT.public()) == ()
    assert places.above(EDGE.public()) == (inner, root)
    assert places.above_client(EDGE.public()) == (edge, inner, root)


def test_a_tree_with_a_seat_that_is_no_point_has_no_places() -> None:
    wrong = BrokerPosition(b"\x01" + bytes(31), memory_address(b"w" * 32), "edge", INNER.public())
    tree = check_tree(sign_tree(ROOT, BROKERS_NETWORK, 2, (*SEATS, wrong)), BROKERS_NETWORK)
    with pytest.raises(AuthenticationError):
        LayerPositions(tree)


def test_a_ring_keeps_so_many_and_forgets_days(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KEPT_KEYS", 3)
    ring = Keyring(GROUP, ONE, NETWORK)
    first = ring.shared(OTHER.public(), DAY)
    for number in range(5):
        ring.shared(key_of(str(number)).public(), DAY)
    assert len(ring) == 3
    assert ring.shared(OTHER.public(), DAY) == first
    ring.shared(OTHER.public(), DAY + 1)
    ring.forget(DAY)
    assert len(ring) == 1


def test_as_published_each_item_has_keys_of_its_own_the_same_at_both_ends_and_again() -> None:
    one, other = (Keyring(PADS, key, NETWORK) for key in (ONE, OTHER))
    holder = WordHolder(one, (other.public, key_of("far").public()), 2, DAY)
    first, second, again = (holder.item(word) for word in (b"v", b"w", b"v"))
    assert first == again
    own = [next(layer for layer in item.layers if layer.target == other.public) for item in (first, second)]
    assert own[0] != own[1]
    pads = [other.on(layer, DAY).route.reveal() for layer in own]
    assert pads == [one.on(layer, DAY).route.reveal() for layer in own]
    assert pads[0] != pads[1]
    assert bytes(a ^ b for a, b in zip(first.element, second.element, strict=True)) != bytes(
        a ^ b for a, b in zip(PADS.element(b"v"), PADS.element(b"w"), strict=True)
    )
    assert Keyring(GROUP, ONE, NETWORK).number(b"v") is None
