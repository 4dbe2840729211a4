"""What children, brokers that ask and brokers on the way may send that no honest one does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from full_world import DAY, FIGURE_2, NETWORK, World, key_of, message, word_of
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.base.errors import AuthenticationError, DecodeError, Refusal
from hushcast_protocol.base.wire import decoder, encode
from hushcast_protocol.brokers.full import day_rows
from hushcast_protocol.brokers.full.aggregation import (
    AskFactors,
    Factors,
    asking,
    check_asked,
    unblinded,
    with_share,
)
from hushcast_protocol.brokers.full.group_action import GROUP, PADS
from hushcast_protocol.brokers.full.item_labels import ItemLabel, as_tokens, onward
from hushcast_protocol.brokers.full.layer_keys import Keyring
from hushcast_protocol.brokers.full.layered_word import LayeredWord
from hushcast_protocol.brokers.full.layers import MAX_LAYERS, Layer, NumberedLayer, in_order, own_layers
from hushcast_protocol.brokers.full.word_holder import WordHolder

ONE = word_of(1)
POINT = GROUP.element(b"point")
A1, B1, B3, B4, C, STRANGER = (key_of(name).public() for name in ("A1", "B1", "B3", "B4", "C", "x"))
LOW_ORDER = bytes(32)


def layered(*pairs: tuple[bytes, bytes], element: bytes = POINT) -> LayeredWord:
    return LayeredWord(DAY, element, in_order(Layer(*pair) for pair in pairs))


def refused(world: World, broker: str, item: LayeredWord) -> str:
    rows = world.nodes[broker].rows
    with pytest.raises(Refusal) as caught:
        rows.read(item)
    assert len(rows) == 0
    return caught.value.reason


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (layered((A1, B3)), "tree"),  # no layer is for B1
        (layered((A1, B1)), "tree"),  # one is missing
        (layered((A1, B1), (A1, B3)), "tree"),
        (layered((A1, B1), (A1, B3), (A1, STRANGER)), "tree"),
        (layered((A1, B1), (A1, B3), (A1, C)), "tree"),  # B4 is passed over
        (layered((A1, B1), (A1, B3), (A1, B4), (A1, C)), "tree"),  # one too many
        (layered((A1, B1), (STRANGER, B1), (A1, B3)), "tree"),
        (layered((A1, B1), (A1, B3), (STRANGER, B3)), "tree"),
        (layered((A1, B1), (A1, B3), (A1, B3)), "form"),  # one twice
        (LayeredWord(DAY, POINT, in_order([Layer(A1, B1), Layer(A1, B3), Layer(A1, B4)])[::-1]), "form"),
        (layered((B1, B1), (A1, B3), (A1, B4)), "form"),  # a broker's own, or one above it
        (layered((A1, B1), (B1, B3), (A1, B4)), "form"),
        (layered((A1, B1), (A1, B3), (B3, B4)), "form"),
        (layered((LOW_ORDER, B1), (A1, B3), (A1, B4)), "form"),
        (layered((A1, B1), (LOW_ORDER, B3), (A1, B4)), "form"),  # else B3 would refuse it of B1
        (layered((A1, B1), (A1, B3), (A1, B4), element=bytes(32)), "form"),
        (layered((A1, B1), (A1, B3), (A1, B4), element=b"\xff" * 32), "form"),
    ],
)
def test_items_that_no_honest_child_sends_are_refused(item: LayeredWord, reason: str) -> None:
    assert refused(World(FIGURE_2, GROUP, 3), "B1", item) == reason


def test_layers_have_numbers_where_a_key_is_for_one_item_and_nowhere_else() -> None:
    numbered = in_order(NumberedLayer(A1, target, 7) for target in (B1, B3, B4))
    assert refused(World(FIGURE_2, GROUP, 3), "B1", LayeredWord(DAY, POINT, numbered)) == "form"
    assert refused(World(FIGURE_2, PADS, 3), "B1", layered((A1, B1), (A1, B3), (A1, B4))) == "form"
    keys = Keyring(GROUP, key_of("B3"), bytes(32))
    with pytest.raises(Refusal, match="form"):
        with_share(keys, asking(GROUP, B1, 1, DAY, in_order([NumberedLayer(A1, B3, 7)])), 1)


@pytest.mark.slow
@given(st.data())
def test_what_a_broker_takes_those_above_take_of_it(data: st.DataObject) -> None:
    """Otherwise one child could have all refused that its parent says."""
    layers = data.draw(st.sampled_from([2, 3, 4]))
    world = World(FIGURE_2, PADS, layers)
    name = data.draw(st.sampled_from(["B1", "B3", "B4"]))
    near = [key_of(one).public() for one in (name, *world.path(name))]
    owners = st.sampled_from([A1, A1, A1, STRANGER, key_of("B2").public(), LOW_ORDER, *near])
    fitting = [Layer(data.draw(owners), target) for target in near[:layers]]
    drawn = st.builds(Layer, owners, st.sampled_from([*near, STRANGER]))
    more = data.draw(st.lists(drawn, max_size=2)) if data.draw(st.booleans()) else []
    item = LayeredWord(DAY, POINT, in_order([*fitting, *more])[:MAX_LAYERS])
    try:
        read = world.nodes[name].rows.read(item)
    except Refusal:
        return
    for at, above in zip([name, *world.path(name)], world.path(name), strict=False):
        world.nodes[at].rows.put(A1, read)
        (shown,) = world.nodes[at].rows.take_changes().shown
        read = world.nodes[above].rows.read(shown)
    assert read.path == ()


def test_near_the_root_it_may_have_several_layers_and_no_more_than_there_are() -> None:
    world = World(FIGURE_2, GROUP, 3)
    for item in (layered((B4, C)), layered((B3, C), (B4, C)), layered((B1, C), (B3, C), (B4, C))):
        assert world.nodes["C"].rows.read(item).path == ()
    assert refused(world, "C", layered(*((key_of(f"{at}").public(), C) for at in range(4)))) == "tree"
    assert refused(world, "C", layered((B4, C), (B4, B3))) == "tree"


def test_an_item_has_a_few_layers_at_most_on_the_wire() -> None:
    decode: Callable[[bytes], LayeredWord] = decoder(LayeredWord, "item", 4096)
    many = LayeredWord(DAY, POINT, tuple(Layer(bytes([at]) * 32, C) for at in range(MAX_LAYERS + 1)))
    for wrong in (many, LayeredWord(DAY, POINT, ()), LayeredWord(DAY, POINT[:31], many.layers[:2])):
        with pytest.raises(DecodeError):
            decode(encode(wrong))


def test_who_repeats_anothers_item_shares_its_row_and_opens_nothing() -> None:
    world = World(FIGURE_2, GROUP, 2)
    item = world.want("A1", ONE)
    world.settle()
    b1 = world.nodes["B1"]
    b1.rows.put(STRANGER, b1.rows.read(item))
    (row,) = b1.rows.rows(DAY)
    assert {child for child, _ in row.members} == {A1, STRANGER}
    assert not b1.rows.take_changes().shown
    holder = WordHolder(Keyring(GROUP, key_of("x"), NETWORK), (B1, *b1.above), 2, DAY)
    holder.item(ONE)
    (name,) = b1.shown
    (tokens,) = as_tokens(onward(b1.rows, DAY, [ItemLabel(name, GROUP.element(b"M"))])[STRANGER])
    with pytest.raises(AuthenticationError):
        holder.open(message(*tokens))


def test_a_child_makes_only_so_many_paths_to_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(day_rows, "MAX_FACTORS", 4)
    rows = World(FIGURE_2, PADS, 2).nodes["B1"].rows
    reads = []
    for at in range(7):
        holder = WordHolder(Keyring(PADS, key_of(f"c{at}"), NETWORK), (B1, B3, B4, C), 2, DAY)
        reads.append(rows.read(holder.item(ONE)))
        rows.put(A1, reads[-1])
    assert len(rows.missing()) == 4
    for read in reads:  # to come and go makes it no more
        rows.take(A1, read.name)
        rows.put(A1, read)
    assert len(rows.missing()) <= 4
    assert len(rows) == 7
    honest = WordHolder(Keyring(PADS, key_of("A2"), NETWORK), (B1, B3, B4, C), 2, DAY)
    read = rows.read(honest.item(ONE))
    rows.put(key_of("A2").public(), read)
    assert (DAY, read.path) in rows.missing()


# Who asks for factors.


def ask_of(*layers: tuple[bytes, bytes], asker: bytes = B1) -> AskFactors:
    return asking(GROUP, asker, 1, DAY, in_order(Layer(*pair) for pair in layers))


@pytest.mark.parametrize(
    ("ask", "reason"),
    [
        (ask_of((A1, B3)), "tree"),  # not all its ancestors
        (ask_of((A1, B3), (A1, C)), "tree"),
        (ask_of((A1, B3), (A1, B4), (A1, C)), "tree"),
        (ask_of((A1, B4), (A1, C)), "tree"),
        (ask_of((A1, B3), (STRANGER, B3)), "tree"),
        (
            ask_of((B1, B3), (A1, B4)),
            "form",
        ),  # one of its own, whose key it has
        (ask_of((B3, B3), (A1, B4)), "form"),
        (ask_of((A1, B3), (A1, B3)), "form"),
        (AskFactors(1, DAY, B1, in_order([Layer(A1, B3), Layer(A1, B4)])[::-1], POINT, POINT), "form"),
    ],
)
def test_factors_that_no_honest_broker_asks_for_are_refused(ask: AskFactors, reason: str) -> None:
    with pytest.raises(Refusal) as caught:
        check_asked(ask, (B3, B4, C), 3, B3, {B3, B4, C}.__contains__)
    assert caught.value.reason == reason


def test_the_last_ancestor_knows_that_it_is() -> None:
    ask = ask_of((A1, B3), (A1, B4))
    listed = {B3, B4, C}.__contains__
    assert [check_asked(ask, (B3, B4, C), 3, own, listed) for own in (B3, B4)] == [False, True]
    with pytest.raises(Refusal):
        check_asked(ask, (B3, B4, C), 3, C, listed)


@pytest.mark.parametrize(
    "ask",
    [
        AskFactors(1, DAY, B1, (Layer(A1, B3),), bytes(32), POINT),  # zero is no key
        AskFactors(1, DAY, B1, (Layer(A1, B3),), b"\x01" + bytes(31), b"\xff" * 32),
        AskFactors(1, DAY, B1, (Layer(LOW_ORDER, B3),), b"\x01" + bytes(31), b"\x01" + bytes(31)),
        AskFactors(1, DAY, LOW_ORDER, (Layer(A1, B3),), b"\x01" + bytes(31), b"\x01" + bytes(31)),
    ],
)
def test_a_request_that_holds_no_keys_is_refused(ask: AskFactors) -> None:
    with pytest.raises(Refusal, match="form"):
        with_share(Keyring(GROUP, key_of("B3"), NETWORK), ask, 2)


def test_an_answer_that_holds_no_keys_is_refused() -> None:
    b1 = Keyring(GROUP, key_of("B1"), NETWORK)
    with pytest.raises(AuthenticationError):
        unblinded(b1, (B3, B4, C), 2, DAY, (Layer(A1, B3),), Factors(1, bytes(32), POINT))


def test_factors_say_the_quotients_of_keys_and_those_on_the_way_learn_nothing() -> None:
    world = World(FIGURE_2, GROUP, 3)
    for name in ("A1", "A2"):
        world.want(name, ONE)
    world.settle()
    b1 = world.nodes["B1"]
    one, other = (own_layers(key_of(name).public(), (B3, B4), 2) for name in ("A1", "A2"))
    quotient = GROUP.product((b1.factors[one].route, GROUP.inverse(b1.factors[other].route)))
    keys = [GROUP.received(world.key(name, above)) for name in ("A2", "A1") for above in ("B3", "B4")]
    assert quotient == GROUP.product((*keys[:2], *map(GROUP.inverse, keys[2:])))
    # What B3 passes on to B4 is hidden even from who holds every key of B3's layers: a blind is on it.
    ask = asking(GROUP, B1, 1, DAY, one)
    passed = with_share(world.nodes["B3"].keys, ask, 2)
    again = with_share(world.nodes["B3"].keys, asking(GROUP, B1, 1, DAY, other), 2)
    between = GROUP.product((GROUP.received(passed.route), GROUP.inverse(GROUP.received(again.route))))
    assert between != GROUP.product((keys[0], GROUP.inverse(keys[2])))


def test_on_a_path_without_factors_rows_stay_apart_and_all_is_delivered() -> None:
    world = World(FIGURE_2, GROUP, 3)
    for name in ("A1", "A2", "A3"):
        world.want(name, ONE)
    world.settle(learn=False)
    assert len(world.rows_of("B1")) == 2
    assert world.publish(ONE).keys() == {"A1", "A2", "A3"}


def test_factors_of_a_day_that_is_gone_and_those_told_twice_change_nothing() -> None:
    world = World(FIGURE_2, PADS, 2)
    for name in ("A1", "A2"):
        world.want(name, ONE)
    world.settle()
    b1 = world.nodes["B1"]
    (path, factors), *_ = b1.factors.items()
    other = b1.keys.shared(STRANGER, DAY)
    list(b1.rows.learn(DAY, path, other))
    assert world.publish(ONE).keys() == {"A1", "A2"}
    list(b1.rows.expire(DAY))
    list(b1.rows.learn(DAY, path, factors))
    assert (len(b1.rows), b1.rows.days, b1.rows.missing()) == (0, (), [])
