"""Brokers under `full` with hostile children, parents and clients: refused, counted, and nobody is harmed."""

from __future__ import annotations

import msgspec
import pytest
import trio
from broker_daemons import tree_of_daemons
from posed_child import as_child, posing
from small_network import ONE, until
from small_tree import Client, Member, SmallTree, small_tree

from hushcast_brokers.broker import children
from hushcast_brokers.broker.full import factors, interests
from hushcast_protocol.base.crypto.key_agreement import agreement_key
from hushcast_protocol.base.crypto.secrets import AgreementKey
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.clear_words import ShownFilter
from hushcast_protocol.brokers.exposure import OPEN
from hushcast_protocol.brokers.frames import (
    Advertise,
    AnonymityTerms,
    Forward,
    HandUp,
    ParentHello,
    RequestAnswer,
    Subscribe,
)
from hushcast_protocol.brokers.full import hand_up
from hushcast_protocol.brokers.full.aggregation import AskFactors, Factors, asking, unblinded
from hushcast_protocol.brokers.full.group_action import GROUP
from hushcast_protocol.brokers.full.layer_keys import Keyring
from hushcast_protocol.brokers.full.layer_positions import LayerPositions
from hushcast_protocol.brokers.full.layered_word import LayeredWord
from hushcast_protocol.brokers.full.layers import Layer, in_order
from hushcast_protocol.brokers.full.word_holder import WordHolder
from hushcast_protocol.content.messages import HEADER, SEAL, TRAIL_SIZE, Message, message_id
from hushcast_protocol.content.payload_sizes import PADDED_SIZES

M = 3
ROWS = (
    ("top", "inner", "root"),
    ("inner", "inner", "top"),
    ("edge 1", "edge", "inner"),
    ("edge 2", "edge", "inner"),
)
FILTER = ShownFilter(bytes(16), (), ())
NO_POINT = b"\xff" * 32


def full(end: str = ""):  # type: ignore[no-untyped-def]
    return small_tree(ROWS, profile=f"full/{M}{end}")


def keys_of(network: SmallTree, member: Member) -> Keyring:
    return Keyring(GROUP, agreement_key(member.seed), network.net.id)


def above(network: SmallTree, member: Member) -> tuple[bytes, ...]:
    return LayerPositions(network.root.daemon.tree).above(member.key)


def item_of(network: SmallTree, member: Member, word: bytes = b"word", day: int | None = None) -> LayeredWord:
    """What a broker asks for itself."""
    day = network.today if day is None else day
    return WordHolder(keys_of(network, member), above(network, member), M, day).item(word)


def clients_item(network: SmallTree, edge: Member, word: bytes = b"word") -> tuple[Keyring, LayeredWord]:
    own = Keyring(GROUP, AgreementKey(network.env.randomness(32)), network.net.id)
    ancestors = LayerPositions(network.root.daemon.tree).above_client(edge.key)
    return own, WordHolder(own, ancestors, M, network.today).item(word)


def forged(network: SmallTree, member: Member) -> dict[str, tuple[LayeredWord | ShownFilter, str]]:
    good, replace = item_of(network, member), msgspec.structs.replace
    stranger = AgreementKey(bytes(range(32))).public()
    first, *others = good.layers
    parent = above(network, member)[0]
    of_parent = next(layer for layer in good.layers if layer.target == parent)
    rest = [layer for layer in good.layers if layer is not of_parent]
    return {
        "a filter": (FILTER, "form"),
        "no point": (replace(good, element=NO_POINT), "form"),
        "out of order": (replace(good, layers=good.layers[::-1]), "form"),
        "twice the same": (replace(good, layers=(first, first, *others)), "form"),
        "of the parent itself": (replace(good, layers=in_order([Layer(parent, parent), *rest])), "form"),
        "not for the parent": (replace(good, layers=tuple(rest)), "tree"),
        "for a stranger": (
            replace(good, layers=in_order([*good.layers[:-1], Layer(member.key, stranger)])),
            "tree",
        ),
        "of low order": (replace(good, layers=in_order([Layer(bytes(32), parent), *rest])), "form"),
        "of a day gone by": (item_of(network, member, day=network.today - 2), "day"),
        "of the day after next": (item_of(network, member, day=network.today + 2), "day"),
    }


async def test_items_that_are_none() -> None:
    async with full() as network:
        member = network["edge 1"]
        talk = await as_child(network, member)
        bad = forged(network, member)
        before = network.count("refused_form") + network.count("refused_tree") + network.count("refused_day")
        for serial, (name, (item, verdict)) in enumerate(bad.items(), 1):
            frame = Advertise(serial, (item_of(network, member), item), (), "no")
            assert await talk.ask(frame) == RequestAnswer(serial, verdict), name
        after = network.count("refused_form") + network.count("refused_tree") + network.count("refused_day")
        assert after - before == len(bad)
        assert network["inner"].status("filters") == 0, "none of an advertisement with a bad item is taken"
        assert await talk.ask(Advertise(50, (item_of(network, member),), (), "no")) == RequestAnswer(
            50, "accepted"
        )
        assert network.root.status("filters") == 1


async def test_under_clear_there_are_no_layers() -> None:
    async with small_tree() as network:
        talk = await as_child(network, network["edge 1"])
        item = LayeredWord(network.today, bytes(32), (Layer(bytes(32), bytes(32)),))
        assert await talk.ask(Advertise(1, (item,), (), "no")) == RequestAnswer(1, "form")
        question = AskFactors(
            2, network.today, bytes(32), (Layer(bytes(32), bytes(32)),), bytes(32), bytes(32)
        )
        assert await talk.ask(question) == RequestAnswer(2, "form")


async def test_clients_with_items_that_are_none_and_with_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interests, "MAX_ITEMS_EACH", 2)
    async with full() as network:
        edge = network["edge 1"]
        client = Client(network, edge)
        await client.attach()
        assert await client.join() == "accepted"

        async def asks(item: LayeredWord | ShownFilter, name: int, terms: AnonymityTerms = OPEN) -> str:
            place = name.to_bytes(16, "big")
            return str(await client.ask(lambda serial: Subscribe(serial, place, item, terms)))

        good = [clients_item(network, edge, bytes([n]))[1] for n in range(3)]
        assert await asks(FILTER, 0) == "form"
        assert await asks(msgspec.structs.replace(good[0], element=NO_POINT), 0) == "form"
        assert await asks(item_of(network, edge), 0) == "form", "it is the edge broker's own"
        assert await asks(good[0], 0, AnonymityTerms(2, AnonymityCondition.SOURCE, "wait")) == "level"
        assert [await asks(item, number) for number, item in enumerate(good)] == [
            "accepted",
            "accepted",
            "quota",
        ]
        assert await asks(good[2], 1) == "accepted", "in place of another"
        question = asking(GROUP, bytes(32), 9, network.today, (Layer(bytes(32), bytes(32)),))
        assert await client.ask(lambda serial: msgspec.structs.replace(question, serial=serial)) == "form"
        assert edge.status("filters") == 2


async def test_frames_cut_flipped_replayed_and_reordered_end_the_link_alone() -> None:
    async with full() as network:
        member = network["edge 1"]
        first, second = item_of(network, member, b"one"), item_of(network, member, b"two")
        ways = {
            "cut": lambda one, two: one[:-1] + two,
            "flipped": lambda one, two: one[:-5] + bytes([one[-5] ^ 1]) + one[-4:],
            "replayed": lambda one, two: one + one,
            "reordered": lambda one, two: two + one,
        }
        for name, way in ways.items():
            talk = await as_child(network, member)
            link, parts = talk.channel._link, []
            for serial, item in enumerate((first, second), 1):
                link.send(msgspec.msgpack.encode(Advertise(serial, (item,), (), "no")))
                parts.append(link.data_to_send())
            before = network["inner"].count("refused_form")
            await talk.channel._stream.send_all(way(*parts))
            while (heard := await talk.hear()) is not None:
                assert name == "replayed", name
                assert heard == RequestAnswer(1, "accepted")
            await until(lambda: network["inner"].count("refused_form") > before, 60, name)  # noqa: B023
        talk = await as_child(network, member)
        assert await talk.ask(Advertise(7, (second,), (), "no")) == RequestAnswer(7, "accepted")
        assert await talk.ask(Advertise(7, (first,), (), "no")) is None, "a serial again"


async def test_questions_for_factors_that_nobody_honest_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    async with full() as network:
        member, other = network["edge 1"], network["edge 2"]
        talk = await as_child(network, member)
        places, own = LayerPositions(network.root.daemon.tree), keys_of(network, member)
        ancestors = above(network, member)
        owner = AgreementKey(bytes(range(32))).public()
        path = in_order(Layer(owner, target) for target in ancestors[: M - 1])
        good = asking(GROUP, own.public, 1, network.today, path)
        replace = msgspec.structs.replace
        bad = [
            (replace(good, asker=places.key(other.key)), "tree"),
            (replace(good, asker=places.key(network.root.key)), "tree"),
            (replace(good, asker=owner), "tree"),
            (replace(good, day=network.today + 2), "day"),
            (replace(good, day=network.today - 2), "day"),
            (replace(good, path=path[:1]), "tree"),
            (replace(good, path=path[::-1]), "form"),
            (replace(good, path=in_order(Layer(own.public, one.target) for one in path)), "form"),
            (replace(good, path=in_order(Layer(places.key(other.key), one.target) for one in path)), "form"),
            (replace(good, route=NO_POINT), "form"),
            (replace(good, content=bytes(32)), "form"),
        ]
        for serial, (question, verdict) in enumerate(bad, 1):
            assert await talk.ask(replace(question, serial=serial)) == RequestAnswer(serial, verdict), serial
        answers = [await talk.ask(replace(good, serial=serial)) for serial in (20, 21)]
        assert all(isinstance(answer, Factors) for answer in answers)
        assert answers[0].route == answers[1].route, "asked again, the answer is the same"
        assert unblinded(own, ancestors, M, network.today, path, answers[0])
        monkeypatch.setattr(factors, "MAX_ANSWERS", 2)
        assert await talk.ask(replace(good, serial=30)) == RequestAnswer(30, "quota")


async def test_without_aggregation_nobody_is_given_a_factor_for_a_child_that_it_makes_up() -> None:
    async with full("/apart") as network:
        member = network["edge 1"]
        talk = await as_child(network, member)
        made_up = AgreementKey(bytes(range(32))).public()
        path = in_order(Layer(made_up, target) for target in above(network, member)[: M - 1])
        own = keys_of(network, member)
        assert await talk.ask(asking(GROUP, own.public, 1, network.today, path)) == RequestAnswer(1, "form")
        assert network["inner"].count("refused_form") == 1


async def test_a_child_that_says_much_is_slowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "MULTIPLICATIONS_AT_ONCE", 10.0)
    monkeypatch.setattr(children, "MULTIPLICATIONS_A_SECOND", 1.0)
    async with full() as network:
        member = network["edge 1"]
        talk = await as_child(network, member)
        items = tuple(item_of(network, member, bytes([n])) for n in range(20))
        began = trio.current_time()
        assert await talk.ask(Advertise(1, items, (), "no")) == RequestAnswer(1, "accepted")
        assert 29 < trio.current_time() - began < 60, "ten seconds at each of three brokers"


async def test_a_parent_whose_answers_and_messages_are_none() -> None:
    async with tree_of_daemons(
        2, (("inner", "inner", "root"), ("edge", "edge", "inner")), profile="full/3"
    ) as network:
        edge = network["edge"]
        body = bytes(HEADER + PADDED_SIZES[0] + SEAL)
        ident, trail, day = message_id(network.today, body), bytes(TRAIL_SIZE), network.today
        shown: list[bytes] = []

        async def answers(talk):  # type: ignore[no-untyped-def]
            await talk.say(ParentHello(bytes(16), 0, 1))
            while (frame := await talk.hear(1e6)) is not None:
                if isinstance(frame, Advertise):
                    shown.extend(item.name for item in frame.add)
                    await talk.say(RequestAnswer(frame.serial, "accepted"))
                    for tokens in (
                        (shown[0], b"x" * 16),
                        (shown[0], b"\xff" * 16, b"\xff" * 16),
                        (shown[0], bytes(16), bytes(16)) * 2,
                    ):
                        await talk.say(Forward(Message(ident, day, tokens, trail, body)))
                elif isinstance(frame, AskFactors):
                    await talk.say(Factors(frame.serial, NO_POINT, NO_POINT))

        async with posing(network, network["inner"], answers):
            for node in network.nodes:
                await node.listen(ONE)
            await until(lambda: edge.count("refused_form") >= 3, 120, "messages are refused")
            await until(lambda: edge.count("factors_refused") >= 2, 120, "factors are refused")
            assert edge.status("messages_waiting") == 0
        assert network.count_at_nodes("deliveries_refused") == 0


async def test_what_is_handed_up_and_nobody_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    async with full("/apart") as network:
        member = network["edge 1"]
        talk = await as_child(network, member)
        item, replace = item_of(network, member), msgspec.structs.replace
        assert await talk.ask(Advertise(1, (item,), (), "no")) == RequestAnswer(1, "accepted")
        good = network.message()
        named = replace(good, tokens=(item.name, *as_parts(GROUP.element(b"any"))))
        stale = message_id(network.today - 2, named.body)
        bad = [
            (good, "form"),  # it has no labels
            (replace(named, tokens=(bytes(16), *named.tokens[1:])), "unknown"),
            (replace(named, tokens=(item.name, b"\xff" * 16, b"\xff" * 16)), "form"),
            (replace(named, id=bytes(32)), "form"),
            (replace(named, day=network.today - 2, id=stale), "day"),
        ]
        for serial, (message, verdict) in enumerate(bad, 10):
            assert await talk.ask(HandUp(serial, message)) == RequestAnswer(serial, verdict), serial
        before = network.root.count("refused_form")
        # Those on the way cannot tell. The root can.
        assert await talk.ask(HandUp(20, named)) == RequestAnswer(20, "accepted")
        await until(lambda: network.root.count("refused_form") == before + 1, 60, "the root refuses it")
        await until(lambda: network["top"].count("messages_orphaned") == 1, 60, "and that is the end of it")
        assert network.root.count("messages_returned") == 0
        assert network.root.store._records.get("handed-up", {}) == {}
        monkeypatch.setattr(hand_up, "MAX_HANDED_UP", len(named.body))
        assert await talk.ask(HandUp(30, named)) == RequestAnswer(30, "quota")


async def test_clients_and_children_under_clear_hand_nothing_up() -> None:
    async with full() as network:
        client = Client(network, network["edge 1"])
        await client.attach()
        assert await client.join() == "accepted"
        assert await client.ask(lambda serial: HandUp(serial, network.message())) == "form"
    async with small_tree() as network:
        talk = await as_child(network, network["edge 1"])
        assert await talk.ask(HandUp(1, network.message())) == RequestAnswer(1, "form")


def as_parts(element: bytes) -> tuple[bytes, bytes]:
    return element[:16], element[16:]
