"""Labels in place of tokens, the outer message, and who opens it."""

from __future__ import annotations

import pytest
from full_world import DAY, FIGURE_2, NETWORK, World, enclosed, key_of, message, word_of

from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.brokers.full.group_action import GROUP, PADS
from hushcast_protocol.brokers.full.item_labels import MAX_LABELS, ItemLabel, as_tokens, onward, read_labels
from hushcast_protocol.brokers.full.outer_message import streamed
from hushcast_protocol.brokers.full.published_names import element_name, published_names
from hushcast_protocol.content.messages import MAX_TOKENS, Message, check_message

ONE = word_of(1)


def labels(count: int) -> list[ItemLabel]:
    return [
        ItemLabel(number.to_bytes(16, "big"), number.to_bytes(32, "little")) for number in range(1, count + 1)
    ]


@pytest.mark.parametrize("count", [1, 2, MAX_LABELS, MAX_LABELS + 1, 3 * MAX_LABELS + 5])
def test_labels_travel_as_tokens_in_as_many_copies_as_they_take(count: int) -> None:
    copies = as_tokens(labels(count))
    assert len(copies) == -(-count // MAX_LABELS)
    assert all(len(tokens) <= MAX_TOKENS for tokens in copies)
    assert all(len(token) == 16 for tokens in copies for token in tokens)
    assert [label for tokens in copies for label in read_labels(tokens)] == labels(count)


@pytest.mark.parametrize("count", [0, 1, 2, 4, 80])
def test_tokens_that_are_no_labels_are_refused(count: int) -> None:
    with pytest.raises(DecodeError):
        read_labels([bytes([number]) * 16 for number in range(count)])


def test_a_label_may_not_come_twice() -> None:
    (tokens,) = as_tokens(labels(1))
    with pytest.raises(DecodeError):
        read_labels(tokens * 2)


def test_published_names_begin_with_the_trunks_and_are_what_the_root_looks_up() -> None:
    tokens = [word_of(number) for number in (9, 1, 5, 3)]
    names = published_names(GROUP, tokens)
    assert names[0] == element_name(GROUP.element(tokens[0]))
    assert list(names[1:]) == sorted(element_name(GROUP.element(token)) for token in tokens[1:])


def test_the_outer_message_is_the_same_each_time_and_opens_to_what_was_published() -> None:
    published = message(*published_names(GROUP, [ONE]))
    root = key_of("C")
    outer, found = enclosed(GROUP, root, published)
    assert (outer, found) == enclosed(GROUP, root, published)
    assert outer.id != published.id
    assert outer.body != published.body
    check_message(outer)
    assert streamed(found[0].content, outer) == published
    again, other = enclosed(GROUP, root, message(*published.tokens, text=b"another"))
    assert other[0].content != found[0].content
    assert again.body[100:] != outer.body[100:]  # no key serves two


def test_a_holder_opens_nothing_else() -> None:
    world = World(FIGURE_2, GROUP, 3)
    world.want("A1", ONE)
    world.settle()
    holder = world.nodes["A1"].holder
    outer, _ = enclosed(GROUP, key_of("C"), message(ONE))

    def copy(*tokens: bytes) -> Message:
        return Message(outer.id, outer.day, tokens, outer.trail, outer.body)

    with pytest.raises(AuthenticationError):
        holder.open(copy(*as_tokens(labels(2))[0]))
    with pytest.raises(DecodeError):
        holder.open(copy(ONE))
    name = world.nodes["A1"].own[ONE].name
    with pytest.raises(AuthenticationError):
        holder.open(copy(name, bytes(16), bytes(16)))
    tampered = holder.open(copy(*as_tokens([ItemLabel(name, GROUP.element(b"no"))])[0]))
    assert tampered.id != message(ONE).id
    holder.forget(name)
    with pytest.raises(AuthenticationError):
        holder.open(copy(*as_tokens([ItemLabel(name, GROUP.element(b"no"))])[0]))


def test_what_opens_a_message_is_checked_where_it_is_passed_on() -> None:
    world = World(FIGURE_2, GROUP, 2)
    world.want("A1", ONE)
    world.settle()
    rows = world.nodes["B3"].rows
    (name,) = world.nodes["B3"].shown
    with pytest.raises(AuthenticationError):
        onward(rows, DAY, [ItemLabel(name, bytes(32))])
    assert onward(rows, DAY, [ItemLabel(bytes(16), bytes(32))]) == {}
    assert onward(rows, DAY + 1, [ItemLabel(name, GROUP.element(b"M"))]) == {}


def test_a_broker_cannot_open_what_it_passes_on() -> None:
    """Not with all its own keys of the day; of k ancestors that collude see the attacks."""
    world = World(FIGURE_2, PADS, 2)
    world.want("A1", ONE)
    world.settle()
    got = world.publish(ONE)
    body = got["A1"][0].body
    b1 = world.nodes["B1"]
    (label,) = b1.labels
    outer, _ = enclosed(PADS, key_of("C"), message(*published_names(PADS, [ONE])))
    for other in world.names:
        if other == b1.keys.public:
            continue
        keys = b1.keys.shared(other, DAY)
        for key in (keys.route, keys.content):
            assert streamed(PADS.strip(key, label.content), outer).body != body
    assert len(NETWORK) == 32
