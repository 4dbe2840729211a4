"""What waits for a broker that has left finds back to its word, hop by hop, and nothing else does."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from full_world import DAY, FIGURE_2, World, enclosed, key_of, message, word_of

from hushcast_protocol.base.errors import AuthenticationError, DecodeError, Refusal
from hushcast_protocol.brokers.full import hand_up
from hushcast_protocol.brokers.full.group_action import GROUP, PADS, GroupAction
from hushcast_protocol.brokers.full.hand_up import (
    MESSAGE,
    HandedUpMessages,
    HandUpShares,
    as_published,
    check_words,
    turned_back,
)
from hushcast_protocol.brokers.full.item_labels import ItemLabel, as_tokens
from hushcast_protocol.brokers.full.published_names import published_names
from hushcast_protocol.content.messages import Message

WORDS = [word_of(number) for number in range(3)]


def came(world: World, name: str, outer: Message) -> Message:
    """The message as it came to a node."""
    return msgspec.structs.replace(outer, tokens=as_tokens(world.nodes[name].labels)[0])


def handed_up(world: World, name: str, given: Message) -> tuple[ItemLabel, ...]:
    """What the root has of what waited for a node."""
    below = world.nodes[name].keys.public
    labels: tuple[ItemLabel, ...] = ()
    for above in world.path(name):
        node = world.nodes[above]
        child = below
        labels = turned_back(
            world.action, given, lambda one, child=child, node=node: node.rows.origin(DAY, child, one)
        )
        if not labels:
            return ()
        given = msgspec.structs.replace(given, tokens=as_tokens(labels)[0])
        below = node.keys.public
    return labels


def published(world: World, *words: bytes) -> tuple[Message, Message]:
    """Publish; return the message with its names, and the outer one."""
    world.publish(*words, text=words[-1])
    named = message(*published_names(world.action, words), text=words[-1])
    return named, enclosed(world.action, key_of(world.root), named)[0]


@pytest.mark.parametrize("action", [PADS, GROUP])
@pytest.mark.parametrize("seed", range(6))
def test_it_comes_back_to_the_root_from_wherever_it_was(action: GroupAction, seed: int) -> None:
    random = Random(seed)
    parents = {f"n{at}": f"n{max(0, at - 1 - random.randrange(4))}" for at in range(1, 9)}
    world = World(parents, action, random.randint(2, 4), aggregates=seed % 2 == 0)
    for name in parents:
        for word in random.sample(WORDS, 2):
            world.want(name, word)
    world.settle()
    named, outer = published(world, *WORDS)
    where = [name for name in parents if world.nodes[name].labels]
    assert where
    for name in where:
        labels = handed_up(world, name, came(world, name, outer))
        back = as_published(action, key_of(world.root), outer, labels)
        check_words(back, named.tokens)
        assert set(back.tokens) <= set(named.tokens)
        assert msgspec.structs.replace(back, tokens=named.tokens) == named


def lied(world: World) -> tuple[Message, Message, Message]:
    """One child's messages of two words, and what names the first has."""
    for word in WORDS[:2]:
        world.want("B3", word)
    world.settle()
    one, outer = published(world, WORDS[0])
    of_one = came(world, "B3", outer)
    _, other = published(world, WORDS[1])
    return one, of_one, came(world, "B3", other)


def test_what_the_root_did_not_send_is_refused() -> None:
    world = World(FIGURE_2, GROUP, 3)
    named, one, other = lied(world)
    root = key_of(world.root)
    name, *content = one.tokens
    bad = {
        "another's content": msgspec.structs.replace(one, tokens=(name, *other.tokens[1:])),
        "another body": msgspec.structs.replace(one, body=other.body, id=other.id),
        "made up": enclosed(GROUP, key_of("nobody"), named)[0],
    }
    for what, given in bad.items():
        given = given if what != "made up" else msgspec.structs.replace(given, tokens=one.tokens)
        with pytest.raises(AuthenticationError):
            as_published(GROUP, root, given, handed_up(world, "B3", given))
    with pytest.raises(AuthenticationError):  # no point
        handed_up(world, "B3", msgspec.structs.replace(one, tokens=(name, b"\xff" * 16, b"\xff" * 16)))
    with pytest.raises(DecodeError):
        handed_up(world, "B3", msgspec.structs.replace(one, tokens=(name,)))
    two = (*one.tokens, *other.tokens)
    with pytest.raises(AuthenticationError):
        as_published(GROUP, root, one, handed_up(world, "B3", msgspec.structs.replace(one, tokens=two)))
    assert handed_up(world, "B3", msgspec.structs.replace(one, tokens=(bytes(16), *content))) == ()


def test_it_comes_back_under_no_word_that_it_had_not() -> None:
    # Two items of one node lie under the same keys, so what opens one's messages can be put beside the other.
    world = World(FIGURE_2, GROUP, 3)
    named, one, other = lied(world)
    given = msgspec.structs.replace(one, tokens=(other.tokens[0], *one.tokens[1:]))
    back = as_published(GROUP, key_of(world.root), one, handed_up(world, "B3", given))
    with pytest.raises(AuthenticationError):
        check_words(back, named.tokens)


def test_a_child_hands_up_so_much_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    given = message(WORDS[0])
    monkeypatch.setattr(hand_up, "MAX_HANDED_UP", 2 * (len(given.body) + MESSAGE))
    shares = HandUpShares()
    for child in (b"one", b"two"):
        for _ in range(2):
            shares.take(child, given)
        with pytest.raises(Refusal, match="quota"):
            shares.take(child, given)
    shares.take(b"one", message(WORDS[0], day=DAY + 1))
    shares.expire(DAY)
    shares.take(b"one", given)


def test_what_is_kept_is_due_once_and_whenever_its_word_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two, three = (message(word, text=word) for word in WORDS)
    monkeypatch.setattr(hand_up, "MAX_KEPT", 2 * (len(one.body) + MESSAGE))
    kept = HandedUpMessages()
    assert kept.put(one)
    assert kept.put(two)
    assert not kept.put(one)
    with pytest.raises(Refusal, match="quota"):
        kept.put(three)
    assert kept.take_due() == [one.id, two.id]
    assert kept.take_due() == []
    assert not kept.is_due
    kept.asked([WORDS[1], WORDS[2]])
    assert kept.take_due() == [two.id]
    assert kept.put(msgspec.structs.replace(one, tokens=(WORDS[2],))), "under one word more"
    assert kept.words(one.id) == {WORDS[0], WORDS[2]}
    assert kept.take_due() == [one.id]
    kept.asked([WORDS[2]])
    assert kept.expire(DAY - 1) == []
    assert kept.is_due
    assert sorted(kept.expire(DAY)) == sorted([one.id, two.id])
    assert len(kept) == 0
    assert not kept.is_due
    kept.asked(WORDS)
    assert not kept.is_due
    assert kept.put(three), "there is room again"


@pytest.mark.parametrize("aggregates", [True, False])
def test_a_row_that_somebody_joins_is_said_once_more_while_brokers_leave(aggregates: bool) -> None:
    # With two layers, what comes of one child's children lies under the same keys two levels up.
    world = World(FIGURE_2, GROUP, 2, aggregates=aggregates)
    world.want("A1", WORDS[0])
    world.settle()
    b3 = world.nodes["B3"].rows
    (said,) = world.nodes["B3"].shown.values()
    world.want("A2", WORDS[0])
    world.settle()
    assert len(b3.rows(DAY)) == 1
    for child in ("A1", "A2"):
        world.unwant(child, WORDS[0])
        world.settle()
        world.want(child, WORDS[0])
        if child == "A2":
            b3.unsettle(DAY)
        for broker in ("A1", "A2", "B1"):
            world.say(broker)
            while world.nodes[broker].up:
                world.hear(broker)
        assert b3.take_changes() == (((said,), ()) if child == "A2" and not aggregates else ((), ()))
    root = world.nodes[world.root].rows
    root.take_joined()
    (mine,) = world.nodes["B4"].shown
    root.again(world.nodes["B4"].keys.public, mine)
    assert len(root.take_joined()) == 1
    assert root.take_joined() == []
