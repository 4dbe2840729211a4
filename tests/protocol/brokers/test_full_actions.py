"""Keys that commute: what is put on comes off in any order, and what is no element is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.base.crypto.group import ORDER, added, hashed
from hushcast_protocol.base.crypto.secrets import Secret
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.brokers.full.group_action import GROUP, KEY_SEED, PADS, GroupAction

ACTIONS = pytest.mark.parametrize("action", [PADS, GROUP], ids=["pads", "group"])
SEEDS = st.lists(st.binary(min_size=KEY_SEED, max_size=KEY_SEED), min_size=1, max_size=4)
EIGHT = bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")  # of order eight


@pytest.mark.slow
@ACTIONS
@given(seeds=SEEDS, word=st.binary(max_size=32), order=st.randoms())
def test_layers_come_off_in_any_order(action: GroupAction, seeds: list[bytes], word: bytes, order) -> None:
    keys: list[Secret] = []
    for seed in seeds:
        keys.append(action.key(seed.ljust(KEY_SEED, b"1") if any(seed) else b"1" * KEY_SEED))
    element = plain = action.element(word)
    for key in keys:
        element = action.wrap(key, element)
    assert element == action.wrap(action.product(keys), plain)
    order.shuffle(keys)
    for key in keys[1:]:
        element = action.strip(key, element)
    assert action.wrap(action.inverse(keys[0]), element) == plain


@ACTIONS
def test_a_product_of_none_changes_nothing(action: GroupAction) -> None:
    element = action.element(b"w")
    nothing = action.product(())
    assert action.wrap(nothing, element) == element
    assert action.received(nothing.reveal()) == nothing


def test_pads_are_xor_of_the_word_itself() -> None:
    assert PADS.element(b"word") == b"word".ljust(32, b"\x00")
    with pytest.raises(ValueError, match="longer"):
        PADS.element(bytes(33))


def test_in_the_group_two_words_under_one_key_do_not_say_their_difference() -> None:
    key = GROUP.key(bytes(range(64)))
    one, other = (GROUP.wrap(key, GROUP.element(word)) for word in (b"one", b"two"))
    assert PADS.wrap(PADS.received(one), other) != PADS.wrap(
        PADS.received(GROUP.element(b"one")), GROUP.element(b"two")
    )


@pytest.mark.parametrize(
    "element",
    [
        bytes(32),  # of order four
        b"\x01" + bytes(31),  # the neutral one
        b"\xff" * 32,  # not on the curve in its one encoding
        EIGHT,
        added(hashed(b"a point of the group"), EIGHT),  # of the group but for a part of order eight
    ],
)
def test_what_is_not_in_the_group_is_refused(element: bytes) -> None:
    key = GROUP.key(bytes(range(64)))
    for move in (GROUP.wrap, GROUP.strip):
        with pytest.raises(AuthenticationError):
            move(key, element)


@pytest.mark.parametrize("value", [0, ORDER, 2**256 - 1])
def test_no_number_but_those_of_the_group_is_a_key(value: int) -> None:
    with pytest.raises(AuthenticationError):
        GROUP.received(value.to_bytes(32, "little"))
