"""Children, parents and strangers that do not keep to the protocol: an end or a verdict, and nothing lost."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import trio
from posed_child import as_child, posing
from small_network import until
from small_tree import (
    KEY,
    OTHER_KEY,
    TOPIC,
    Client,
    SmallTree,
    filter_of,
    hears,
    nothing_waits,
    small_tree,
)
from talk import Talk

from hushcast_brokers import tree_comparison, upstream
from hushcast_brokers.broker import children, clear_matching, clients, strangers
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.roster import RosterView
from hushcast_protocol.brokers import child_advertisements
from hushcast_protocol.brokers.broker_tree import BrokerPosition, sign_tree
from hushcast_protocol.brokers.clear_words import ShownFilter, shown
from hushcast_protocol.brokers.exposure import OPEN
from hushcast_protocol.brokers.filter_routes import NOTHING
from hushcast_protocol.brokers.frames import (
    Ack,
    Advertise,
    Forward,
    Join,
    NewTree,
    ParentHello,
    Ping,
    Pong,
    Publish,
    Receipt,
    RequestAnswer,
    Subscribe,
    Unsubscribe,
)

WHOLE = shown(KEY, filter_of(""))
NARROW = shown(KEY, filter_of("lat in [0, 10]"))
UPSIDE_DOWN = ShownFilter(NARROW.topic, NARROW.places, (None, (10, 0)))
ONE_SIDE = ShownFilter(NARROW.topic, NARROW.places, ((0, 10),))
LABEL_AS_RANGE = ShownFilter(NARROW.topic, NARROW.places, ((0, 10), None))


async def is_still_well(network: SmallTree, edge: str = "edge 3") -> None:
    client = await network.client(edge, "")
    message = await network.published(lat=1)
    await until(hears(client, message))


@pytest.mark.parametrize("bad", [UPSIDE_DOWN, ONE_SIDE, LABEL_AS_RANGE], ids=["range", "sides", "kind"])
async def test_filters_that_are_none(bad: ShownFilter) -> None:
    async with small_tree() as network:
        talk = await as_child(network, network["edge 1"])
        assert await talk.ask(Advertise(1, (NARROW, bad), (), "no")) == RequestAnswer(1, "form")
        client = await network.client("edge 2")
        assert await client.ask(lambda serial: Subscribe(serial, bytes(16), bad, OPEN)) == "form"
        assert network["inner 1"].status("filters") == network["edge 2"].status("filters") == 0
        assert network.count("refused_form") == 2
        await is_still_well(network)


async def test_a_child_that_names_what_it_never_showed() -> None:
    async with small_tree() as network:
        other = await network.client("edge 2", "lat in [0, 10]")
        talk = await as_child(network, network["edge 1"])
        assert await talk.ask(Advertise(1, (), (NARROW.name,), "no")) == RequestAnswer(1, "form"), (
            "another one did"
        )
        assert await talk.ask(Advertise(2, (WHOLE,), (), "no")) == RequestAnswer(2, "accepted")
        assert await talk.ask(Advertise(3, (NARROW,), (NARROW.name,), "no")) == RequestAnswer(3, "form")
        assert await talk.ask(Advertise(4, (NARROW,), (WHOLE.name,), "end")) == RequestAnswer(4, "form")
        assert await talk.ask(Advertise(5, (NARROW,), (), "part")) == RequestAnswer(5, "accepted")
        assert await talk.ask(Advertise(6, (), (WHOLE.name,), "no")) == RequestAnswer(6, "form"), (
            "a whole is coming"
        )
        assert await talk.ask(Advertise(7, (), (), "end")) == RequestAnswer(7, "accepted")
        assert network["inner 1"].status("filters") == 2
        message = await network.published(lat=5)
        await until(hears(other, message))


async def test_requests_of_the_wrong_kind_and_serials_that_do_not_grow() -> None:
    async with small_tree() as network:
        talk = await as_child(network, network["edge 1"])
        assert await talk.ask(Join(1, None)) == RequestAnswer(1, "form")
        assert await talk.ask(Subscribe(2, bytes(16), NARROW, OPEN)) == RequestAnswer(2, "form")
        assert await talk.ask(Advertise(2, (), (), "no")) is None
        client = await network.client("edge 2")
        assert await client.ask(lambda serial: Advertise(serial, (NARROW,), (), "no")) == "form"
        await client.talk.say(Unsubscribe(1, bytes(16)))
        await until(lambda: not client.is_attached)
        await is_still_well(network)


async def test_bytes_that_are_no_frames_end_the_link_alone() -> None:
    async with small_tree() as network:
        client = await network.client("edge 2", "")
        for say in (b"", b"\xc1", b"x" * 1000, msgspec.msgpack.encode(["advertise", 1])):
            talk = await as_child(network, network["edge 1"])
            talk.channel._link.send(say)
            await talk.channel._stream.send_all(talk.channel._link.data_to_send())
            assert await talk.hear() is None
        await until(lambda: network.count("refused_form") == 4)
        message = await network.published(lat=1)
        await until(hears(client, message))


async def test_what_was_not_sent_is_not_acknowledged() -> None:
    async with small_tree() as network:
        client = await network.client("edge 1", "")
        client.acknowledges = False
        message = await network.published(lat=1)
        await until(hears(client, message))
        await client.talk.say(Ack(2))
        await until(lambda: not client.is_attached)
        assert network["edge 1"].status("messages_waiting") == 1
        client.acknowledges = True
        await client.attach()
        await until(lambda: len(client.heard) == 2)
        await nothing_waits(network)


async def test_who_does_not_acknowledge_is_let_go_and_loses_nothing() -> None:
    async with small_tree() as network:
        client = await network.client("edge 1", "")
        client.acknowledges = False
        messages = [await network.published(lat=1) for _ in range(3)]
        await until(lambda: network["edge 1"].count("children_lapsed") == 1, 120)
        await until(lambda: not client.is_attached)
        client.acknowledges = True
        await client.attach()
        await until(lambda: len(client.heard) == 6)
        assert client.ids()[3:] == [message.id for message in messages]
        await nothing_waits(network)


async def test_children_of_others_and_strangers_with_names() -> None:
    async with small_tree() as network:
        for name, to in (("edge 1", "inner 2"), ("inner 2", "edge 3"), ("edge 1", "root")):
            talk = await network.connect(network[to], network[name].seed, network.view)
            assert await talk.hear() is None
        talk = await network.connect(network["inner 1"], Seed.draw(network.env.randomness), network.view)
        assert await talk.hear() is None
        assert network.count("refused_unlisted") == 4
        talk = await network.connect(network["inner 1"], None, None)
        await talk.say(Advertise(1, (WHOLE,), (), "no"))
        assert await talk.hear() is None
        await until(lambda: network.count("refused_form") == 1)
        await is_still_well(network)


async def test_strangers_are_told_the_tree_if_they_want_one_and_leave_in_time() -> None:
    async with small_tree() as network:
        talk = await network.connect(network["edge 1"], None, RosterView(0, bytes(32)))
        await talk.say(Ping())
        assert isinstance(await talk.hear(), NewTree)
        assert await talk.hear() == Pong()
        assert await talk.hear(strangers.ASK_WITHIN + 10) is None
        talk = await network.connect(network["edge 1"], None, None)
        assert await talk.ask(Ping()) == Pong()
        assert await talk.ask(Publish(network.message(), None)) == Receipt("unknown", 0)


async def test_seats_that_are_no_tree_change_nothing() -> None:
    async with small_tree() as network:
        version = network.root.daemon.tree.version
        edge, one, two = network["edge 1"], network["inner 1"], network["inner 2"]
        second = BrokerPosition(edge.key, edge.address, "edge", two.key)
        with pytest.raises(DecodeError, match="second parent"):
            await network.root.daemon.replace_seats((*network.seats, second))
        loop = [
            msgspec.structs.replace(one.seat, parent=two.key),
            msgspec.structs.replace(two.seat, parent=one.key),
        ]
        with pytest.raises(DecodeError, match="loop"):
            await network.root.daemon.replace_seats(tuple(loop))
        assert network.root.daemon.tree.version == version
        await network.list_all()
        await trio.sleep(10)
        assert network.root.daemon.tree.version == version, "nothing has changed"
        await is_still_well(network)


async def test_trees_that_are_stale_forged_or_of_another_root() -> None:
    async with small_tree() as network:
        old = network.root.daemon.tree.signed
        network["edge 1"].role = "inner"
        await network.list_all()
        await network.linked()
        version = network.root.daemon.tree.version
        newest = network.root.daemon.tree.signed
        stranger = Seed.draw(network.env.randomness)
        forged = sign_tree(network.root.seed, network.net, version + 1, [_root(network), *network.seats])
        forged = Signed(forged.body, bytes(64))
        altered = Signed(newest.body[:-1] + b"\x01", newest.signature)
        talk = await as_child(network, network["edge 2"])
        await talk.say(NewTree(old))
        assert await talk.ask(Ping()) == Pong(), "an old one is no harm"
        for bad in (forged, altered):
            talk = await as_child(network, network["edge 2"])
            await talk.say(NewTree(bad))
            assert await talk.hear() is None
        claims = RosterView(version + 5, bytes(32))
        talk = await network.connect(network["inner 1"], stranger, claims)
        await talk.say(NewTree(forged))
        assert await talk.hear() is None
        talk = await network.connect(network["inner 1"], stranger, claims)
        assert await talk.hear(tree_comparison.TREE_WITHIN + 10) is None, "it said that it had a newer one"
        talk = await network.connect(network["inner 1"], stranger, claims)
        assert await talk.ask(Ping()) is None
        assert all(member.daemon.tree.version == version for member in network.members if member.is_up)
        await is_still_well(network)


def _root(network: SmallTree) -> BrokerPosition:
    return BrokerPosition(network.root.key, network.root.address, "root", None)


async def test_a_seat_that_goes_is_let_go_at_once() -> None:
    async with small_tree() as network:
        member = network["edge 1"]
        client = await network.client(member, "")
        network.members.remove(member)
        await network.list_all()
        await until(lambda: member.key not in network["inner 1"].daemon.connected())
        await until(lambda: not client.is_attached)
        assert client.trees
        assert member.status("role") is None
        await member.stop()


@pytest.mark.parametrize(
    "frames",
    [
        [Pong()],
        [ParentHello(bytes(16), 0, 1), ParentHello(bytes(16), 0, 1)],
        [ParentHello(bytes(16), 0, 1), RequestAnswer(77, "accepted")],
    ],
    ids=["no standing", "two standings", "nobody asked"],
)
async def test_a_parent_that_says_what_cannot_be(frames: list[Any]) -> None:
    async with small_tree() as network:
        client = await network.client("edge 1", "")

        async def script(talk: Talk) -> None:
            await talk.say(*frames)
            await trio.sleep(5)

        async with posing(network, network["inner 1"], script):
            await until(lambda: network["edge 1"].count("parent_faults") > 0, 120)
        await network["inner 1"].start()
        await network.linked()
        message = await network.published(lat=1)
        await until(hears(client, message))


async def test_a_parent_that_forwards_what_is_no_message() -> None:
    async with small_tree() as network:
        client = await network.client("edge 1", "")
        good = network.message(lat=1)
        forged = msgspec.structs.replace(good, id=bytes(32))
        no_words = msgspec.structs.replace(good, tokens=(good.tokens[0], b"\xff" * 16))
        off_grid = network.message(lat=2)
        off_grid = msgspec.structs.replace(
            off_grid, tokens=(off_grid.tokens[0], b"\x01\x01" + (2**31).to_bytes(14, "big"))
        )
        yesterday = network.message(day=network.today - 3, lat=1)
        acks: list[Any] = []

        async def script(talk: Talk) -> None:
            await talk.say(ParentHello(bytes(16), 0, 1))
            await talk.say(*map(Forward, (forged, no_words, yesterday, off_grid, good)))
            while (frame := await talk.hear(1e6)) is not None:
                if isinstance(frame, Ack):
                    acks.append(frame.number)

        async with posing(network, network["inner 1"], script):
            await until(hears(client, good), 240)
            await until(lambda: acks and acks[-1] == 5, 60, "all are acknowledged: none comes again")
        assert client.ids() == [off_grid.id, good.id]
        assert network["edge 1"].count("refused_form") == 2
        assert network["edge 1"].count("messages_expired") == 1


async def test_a_parent_that_sends_more_than_may_be_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream, "MAX_AHEAD", 2000)
    async with small_tree() as network:

        async def script(talk: Talk) -> None:
            await talk.say(ParentHello(bytes(16), 0, 1))
            await talk.say(*(Forward(network.message()) for _ in range(10)))
            await trio.sleep(5)

        async with posing(network, network["inner 1"], script):
            await until(lambda: network["edge 1"].count("parent_faults") > 0, 120)
        await network["inner 1"].start()
        await network.linked()


async def test_publications_that_are_refused() -> None:
    async with small_tree() as network:
        client = await network.client("edge 1", "")
        good = network.message(lat=1)
        for bad in (
            msgspec.structs.replace(good, id=bytes(32)),
            msgspec.structs.replace(good, tokens=(good.tokens[0], b"\xff" * 16)),
            msgspec.structs.replace(good, body=good.body + b"x"),
        ):
            assert await network.publish(bad) == "form"
        assert await network.publish(network.message(day=network.today + 2)) == "day"
        assert await network.publish(good) == "accepted"
        assert await network.publish(good) == "accepted"
        last = await network.published(lat=2)
        await until(hears(client, last))
        assert client.ids() == [good.id, last.id]
        assert network.root.count("publications_repeated") == 1


async def test_one_id_has_one_shape_for_a_client() -> None:
    async with small_tree() as network:
        client = await network.client("edge 1", "")
        other = ShownFilter(WHOLE.topic, (*WHOLE.places, None), (*WHOLE.sides, None))
        assert await client.ask(lambda serial: Subscribe(serial, b"2" * 16, other, OPEN)) == "form"
        liar = await network.client("edge 1")
        assert await liar.ask(lambda serial: Subscribe(serial, b"2" * 16, other, OPEN)) == "accepted"
        message = await network.published(lat=1)
        await until(hears(client, message))
        await until(hears(liar, message))


async def test_caps_of_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "MAX_CLIENTS", 2)
    monkeypatch.setattr(clear_matching, "MAX_FILTERS_EACH", 2)
    async with small_tree() as network:
        one = await network.client("edge 1", "lat in [0, 1]", "lat in [1, 2]")
        assert await one.subscribe("lat in [2, 3]", b"3" * 16) == "quota"
        assert await one.subscribe("lat in [2, 3]", (1).to_bytes(16, "big")) == "accepted", "in place of one"
        two = await network.client("edge 1")
        three = Client(network, network["edge 1"])
        await three.attach()
        assert await three.subscribe("") == "unknown"
        assert await three.join() == "quota"
        await two.leave()
        await until(lambda: network["edge 1"].status("clients") == 1)
        assert await three.join() == "accepted"
        assert await three.join() == "accepted", "again"


async def test_only_listed_clients_are_served_where_there_is_a_list() -> None:
    async with small_tree() as network:
        edge = network["edge 1"]
        one = Client(network, edge)
        await edge.stop()
        edge.clients = frozenset({one.key})
        await edge.start()
        await network.linked()
        await one.attach()
        assert await one.join() == "accepted"
        assert await one.subscribe("") == "accepted"
        other = Client(network, edge)
        await other.attach()
        assert await other.join() == "unknown"


@pytest.mark.parametrize("is_running", [True, False])
async def test_who_is_listed_no_more_is_forgotten_and_sent_nothing(is_running: bool) -> None:
    async with small_tree() as network:
        edge = network["edge 1"]
        one, other = [await network.client("edge 1", "") for _ in range(2)]
        if is_running:
            edge.daemon.serve_only(frozenset({other.key}))
        else:
            await edge.stop()
            edge.clients = frozenset({other.key})
            await edge.start()
            await network.linked()
            await other.attach()
        await until(lambda: (edge.status("clients"), edge.status("clients_connected")) == (1, 1))
        await one.attach()
        assert one.standing is not None
        assert one.standing.digest == NOTHING
        assert await one.join() == "unknown"
        heard = len(one.heard)
        message = await network.published()
        await until(hears(other, message))
        assert len(one.heard) == heard
        edge.daemon.serve_only(None)
        assert await one.join() == "accepted"


async def test_who_is_listed_no_more_is_sent_nothing_while_it_is_forgotten() -> None:
    async with small_tree() as network:
        edge = network["edge 1"]
        one, other = [await network.client("edge 1", "") for _ in range(2)]
        one.acknowledges = False
        waits = await network.published()
        await until(hears(one, waits))
        served, steps = edge.daemon._clients, list[Any]()
        spawn, served._spawn = served._spawn, steps.append  # others go before it
        edge.daemon.serve_only(frozenset({other.key}))
        await until(lambda: not one.is_attached)
        heard = len(one.heard)
        await one.attach()
        message = await network.published()
        await until(hears(other, message))
        for step in steps:
            spawn(step)
        await until(lambda: edge.status("filters") == 1)
        await trio.sleep(5)
        await one.attach()
        await trio.sleep(5)
        assert len(one.heard) == heard
        assert edge.status("messages_waiting") == 0
        assert await one.join() == "unknown"


async def test_who_is_listed_no_more_while_it_waits_to_be_forgotten_is_not_served() -> None:
    async with small_tree((("edge", "edge", "root"),)) as network:
        edge = network["edge"]
        one, other = [await network.client("edge", "") for _ in range(2)]
        served, steps = edge.daemon._clients, list[Any]()
        spawn, served._spawn = served._spawn, steps.append  # others go before it
        served.forget_all()
        serial = await one.say(lambda serial: Join(serial, None))
        await trio.sleep(5)
        edge.daemon.serve_only(frozenset({other.key}))
        for step in steps:
            spawn(step)
        await until(lambda: one.verdict(serial) == "unknown")
        assert await other.join() == "accepted"
        assert edge.status("clients") == 1


async def test_a_parent_without_room_and_what_becomes_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with small_tree() as network:
        one = await network.client("edge 1", "lat in [0, 1]")
        monkeypatch.setattr(child_advertisements, "MAX_FILTERS", 1)
        two = await network.client("edge 2")
        assert await two.subscribe("lat in [5, 6]") == "quota"
        assert network["edge 2"].count("advertisements_refused") == 1
        assert await one.unsubscribe() == "accepted"
        await until(lambda: network["inner 1"].status("filters") == 1, 120)
        assert await two.subscribe("lat in [5, 6]") == "accepted"
        message = await network.published(lat=5)
        await until(hears(two, message))


async def test_requests_that_wait_are_bounded_and_clients_that_ask_much_are_slowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(children, "MAX_UNDER_WAY", 4)
    async with small_tree() as network:
        client = await network.client("edge 1")
        await network["inner 1"].stop()
        await until(lambda: network["edge 1"].daemon.parent_state != "open")
        serials = [
            await client.say(lambda serial, n=n: Subscribe(serial, bytes([n]) * 16, NARROW, OPEN))
            for n in range(6)
        ]
        await until(lambda: client.verdict(serials[5]) == "quota")
        await network["inner 1"].start()
        await until(lambda: client.verdict(serials[3]) == "accepted")
        assert [client.verdict(serial) for serial in serials] == ["accepted"] * 4 + ["quota"] * 2
    monkeypatch.undo()
    monkeypatch.setattr(children, "REQUESTS_AT_ONCE", 8.0)
    async with small_tree() as network:
        client = await network.client("edge 1")
        began = trio.current_time()
        for n in range(48):
            last = await client.say(lambda serial, n=n: Unsubscribe(serial, bytes([n]) * 16))
        await until(lambda: client.verdict(last) == "accepted")
        assert trio.current_time() - began > 4.5


async def test_other_topics_are_not_the_same() -> None:
    async with small_tree() as network:
        one = await network.client("edge 1", "lat in [0, 10]", key=OTHER_KEY)
        await network.published(lat=5)
        await nothing_waits(network)
        assert one.heard == []
        assert len(TOPIC.attributes) == 2


async def test_nothing_waits_for_who_is_listed_no_more_while_attached() -> None:
    async with small_tree((("edge", "edge", "root"),)) as network:
        edge = network["edge"]
        client = await network.client("edge", "")
        client.acknowledges = False
        await network.published()
        await until(lambda: edge.status("messages_waiting") == 1, 30.0)
        edge.daemon.serve_only(frozenset())
        await until(lambda: edge.status("messages_waiting") == 0, 60.0, "nothing waits for it")
