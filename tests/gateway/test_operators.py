"""Whoever runs a gateway sees its clients and what it retains, and disconnects and deletes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from houses import House, acknowledged, houses, listening, quick, until
from houses_elsewhere import elsewhere
from memory_gateway import Client, Gateway, running
from operator_questions import ask
from trio.testing import MockClock

from hushcast_gateway.operators.operator_answers import OperatorAnswers
from hushcast_gateway.operators.questions import (
    ClientLine,
    ClientsQuestion,
    DelayedLine,
    DelayedQuestion,
    Done,
    Failed,
    KickRequest,
    Line,
    PurgeRequest,
    RefusedLine,
    RefusedQuestion,
    RetainedLine,
    RetainedQuestion,
)
from hushcast_gateway.sections.history_section import HistorySection
from hushcast_protocol.mqtt.limits import MqttLimits
from hushcast_protocol.mqtt.mqtt_settings import MqttSettings
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.access import Access, AccessPermissions
from hushcast_protocol.mqtt.wire.packets import V311, Connect, Disconnect, PingReq, Publish, Subscribe, Will
from hushcast_protocol.mqtt.wire.packets import RequestedSubscription as Asked


def history_of(wanted: str) -> MqttSettings:
    return MqttSettings(history=(wanted,), history_seconds=3_600)


async def by_name(packet: Connect, peer: object) -> AccessPermissions:
    """Let everybody in under the name they give, below which they may do all."""
    await trio.lowlevel.checkpoint()
    user = packet.username or ""
    return AccessPermissions(Access(("#",), (f"{user}/#", "will")), user, packet.client_id)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)


async def test_clients_are_listed_with_what_they_sent_and_got(autojump_clock: MockClock) -> None:
    async with running(authenticate=by_name) as gateway:
        alice = await gateway.connect("phone", username="alice", expiry=100)
        await alice.subscribe("alice/#", 1)
        await gateway.connect("lamp", username="bob")
        for _ in range(3):
            await alice.send(Publish("alice/x", b"12345", 0))
            assert (await alice.message()).payload == b"12345"
        one, two, done = await ask(gateway, ClientsQuestion())
        assert isinstance(one, ClientLine)
        assert isinstance(two, ClientLine)
        assert done == Done(count=2)
        assert (one.user, one.client, one.filters, one.until) == ("alice", "phone", 1, None)
        assert (one.packets_in, one.packets_out) == (5, 5)
        assert one.bytes_in is not None
        assert one.bytes_out is not None
        assert 60 < one.bytes_out < one.bytes_in < 120
        assert one.since == 1_000_000.0
        assert (two.user, two.client, two.packets_in) == ("bob", "lamp", 1)
        of_bob = await ask(gateway, ClientsQuestion(user="bob"))
        assert [one.client for one in of_bob if isinstance(one, ClientLine)] == ["lamp"]
        await alice.send(Disconnect())
        assert await alice.next() is None
        sender = await gateway.connect("sender", username="alice")
        await sender.send(Publish("alice/x", b"", 1, packet_id=1))
        await trio.sleep(0.1)
        away = (await ask(gateway, ClientsQuestion(user="alice")))[0]
        assert isinstance(away, ClientLine)
        assert (away.since, away.packets_in, away.queue) == (None, None, 1)
        assert away.until == pytest.approx(1_000_100.0, abs=1)


async def test_who_is_kicked_hears_why_and_its_will_is_published(autojump_clock: MockClock) -> None:
    async with running(authenticate=by_name) as gateway:
        mourner = await gateway.connect("mourner")
        await mourner.subscribe("will")
        for version, heard in ((5, Disconnect(Reason.ADMINISTRATIVE_ACTION)), (V311, None)):
            client = await gateway.connect("phone", version, username="alice", will=Will("will", b"gone"))
            assert await ask(gateway, KickRequest(client="phone")) == [Done(count=1)]
            assert await client.next() == heard
            assert (await mourner.message()).payload == b"gone"
        assert gateway.broker.connected == 1
        await mourner.send(PingReq())


async def test_who_is_forgotten_has_no_session_any_more(autojump_clock: MockClock) -> None:
    async with running(authenticate=by_name) as gateway:
        client = await gateway.connect("phone", username="alice", expiry=100)
        await client.subscribe("alice/#", 1)
        await ask(gateway, KickRequest(client="phone"))
        (refused,) = await ask(gateway, KickRequest(client="phone"))
        assert isinstance(refused, Failed)
        assert "--forget" in refused.why
        assert (gateway.broker.sessions, gateway.broker.subscriptions) == (1, 1)
        assert await ask(gateway, KickRequest(client="phone", forget=True)) == [Done(count=1)]
        await trio.sleep(0.1)
        assert (gateway.broker.sessions, gateway.broker.subscriptions) == (0, 0)
        await gateway.connect("phone", username="alice", expiry=100)
        assert await ask(gateway, KickRequest(client="phone", forget=True)) == [Done(count=1)]
        assert gateway.broker.sessions == 0


async def test_a_client_of_several_users_is_asked_for_by_its_user(autojump_clock: MockClock) -> None:
    async with running(authenticate=by_name) as gateway:
        for user in ("alice", "bob", ""):
            await gateway.connect("phone", username=user)
        (refused,) = await ask(gateway, KickRequest(client="phone"))
        assert isinstance(refused, Failed)
        assert "one of '', alice and bob" in refused.why
        assert await ask(gateway, KickRequest(client="phone", user="")) == [Done(count=1)]
        (refused,) = await ask(gateway, KickRequest(client="nobody"))
        assert isinstance(refused, Failed)
        assert "hushcast gateway clients" in refused.why
        assert gateway.broker.connected == 2


async def test_what_is_retained_is_listed_and_deleted_as_by_its_publisher(autojump_clock: MockClock) -> None:
    async with running(authenticate=by_name) as gateway:
        client = await gateway.connect("phone", username="alice")
        for topic in ("alice/1", "alice/2", "other"):
            properties = {"message_expiry_interval": 50} if topic == "other" else {}
            await acknowledged(client, Publish(topic, b"123", 1, True, packet_id=1, properties=properties))  # type: ignore[arg-type]
        *found, done = await ask(gateway, RetainedQuestion(filter="#"))
        assert done == Done(count=3)
        one = found[0]
        assert isinstance(one, RetainedLine)
        assert (one.topic, one.bytes, one.qos, one.user, one.travels) == ("alice/1", 3, 1, "alice", False)
        assert [one.expires for one in found if isinstance(one, RetainedLine)] == [None, None, 1_000_050.0]
        await client.send(Subscribe(2, [Asked("alice/#", 1, retain_handling=2)]))
        await client.next()
        assert await ask(gateway, PurgeRequest(filter="alice/+")) == [Done(count=2)]
        assert [(await client.message()).payload for _ in range(2)] == [b"", b""], "who is subscribed hears"
        left = await ask(gateway, RetainedQuestion(filter="#"))
        assert [one.topic for one in left if isinstance(one, RetainedLine)] == ["other"]
        (refused,) = await ask(gateway, PurgeRequest(filter="a/#/b"))
        assert isinstance(refused, Failed)
        assert gateway.broker.retained == 1


async def test_a_purge_of_much_keeps_nobody_waiting(autojump_clock: MockClock) -> None:
    """Under the measure of all steps here; what it deletes is gone after a kill, too."""
    async with running() as gateway:
        for n in range(3_000):
            gateway.broker.arrived(f"t/{n}", b"x", 1, True, {}, 0.0)
        reader = await gateway.connect("reader")
        await reader.subscribe("t/#", 0)
        assert await ask(gateway, PurgeRequest(filter="t/#")) == [Done(count=3_000)]
        assert gateway.broker.retained == 0
        assert gateway.broker.ledger.made == gateway.broker.ledger.durable


async def test_a_purge_takes_what_histories_have(autojump_clock: MockClock) -> None:
    async with running(authenticate=by_name, settings=history_of("alice/#")) as gateway:
        client = await gateway.connect("phone", username="alice")
        for topic, retain in (("alice/1", True), ("alice/1", True), ("alice/2", False), ("alice/3/x", False)):
            await acknowledged(client, Publish(topic, b"123", 1, retain, packet_id=1))
        *_, done = await ask(gateway, RetainedQuestion(filter="alice/+"))
        assert done == Done(count=1, histories=3)
        assert await ask(gateway, PurgeRequest(filter="alice/+")) == [Done(count=1, histories=3)]
        assert gateway.broker.ledger.made == gateway.broker.ledger.durable
        await client.send(Subscribe(2, [Asked("alice/#", 1)], {"user_property": [("since", "all")]}))
        found = [await client.message() for _ in range(2)]
        assert [(one.topic, one.payload) for one in found] == [("alice/3/x", b"123"), ("alice/1", b"")], (
            "of what was retained the history has the deletion"
        )
        assert await ask(gateway, PurgeRequest(filter="alice/3/#")) == [Done(count=0, histories=1)]


async def test_a_purge_of_a_long_history_keeps_nobody_waiting(autojump_clock: MockClock) -> None:
    """Under the measure of all steps here."""
    async with running(settings=history_of("#")) as gateway:
        for n in range(5_000):
            gateway.broker.arrived(f"t/{n}", b"x", 1, False, {}, 1_000_000.0)
        assert await ask(gateway, PurgeRequest(filter="t/#")) == [Done(count=0, histories=5_000)]
        assert gateway.broker.kept == 0
        assert gateway.broker.ledger.made == gateway.broker.ledger.durable


async def test_who_was_refused_what_is_told_by_name(autojump_clock: MockClock) -> None:
    async with running(authenticate=by_name) as gateway:
        client = await gateway.connect("phone", username="alice")
        for wanted in ("bob/1", "bob/2"):
            await client.send(Subscribe(1, [Asked(wanted)]))
            await client.next()
        one, done = await ask(gateway, RefusedQuestion())
        assert done == Done(count=1)
        assert isinstance(one, RefusedLine)
        assert (one.thing, one.cause, one.user, one.client) == ("subscription", "forbidden", "alice", "phone")
        assert (one.subject, one.count) == ("bob/2", 2)
        assert "alice" not in repr(one)
        await trio.sleep(700)
        assert await ask(gateway, RefusedQuestion()) == [Done(count=0)]


async def test_what_waits_to_be_published_is_told(autojump_clock: MockClock) -> None:
    async with running(authenticate=by_name, limits=MqttLimits(delayed=10)) as gateway:
        client = await gateway.connect("phone", username="alice")
        await acknowledged(client, Publish("$delayed/60/alice/x", b"123", 1, packet_id=1))
        one, done = await ask(gateway, DelayedQuestion())
        assert done == Done(count=1)
        assert isinstance(one, DelayedLine)
        assert (one.topic, one.bytes, one.qos, one.user, one.client) == ("alice/x", 3, 1, "alice", "phone")
        assert one.due == pytest.approx(1_000_060, abs=1)
        await client.subscribe("alice/x")
        assert (await client.message()).payload == b"123"
        assert await ask(gateway, DelayedQuestion()) == [Done(count=0)]


async def test_what_is_no_question_is_told_so(autojump_clock: MockClock) -> None:
    async with running() as gateway:
        for asked in (b"", b"{}", b'{"is": "drop"}', b'{"is": "purge"}', b"[" * 10_000, b"\xff"):
            (line,) = [one async for one in OperatorAnswers(gateway.state).answer(asked)]
            assert isinstance(msgspec.json.decode(line, type=Line), Failed)  # type: ignore[arg-type]


# What travels


async def test_what_histories_have_is_deleted_by_any_of_its_names(tmp_path: Path) -> None:
    async with houses(tmp_path, {"lamps/#": "home"}, history=HistorySection(topics=("lamps/#",))) as (
        one,
        _,
        first,
        _,
    ):
        writer = await first.connect("writer")
        for number in range(2):
            await acknowledged(writer, Publish(f"lamps/{number}", b"on", 1, packet_id=1))
        await until(lambda: len(one.daemon.published) == 2)
        assert first.broker.kept == 2
        assert await ask(first, PurgeRequest(filter="hush/home/lamps/1")) == [Done(count=0, histories=1)]
        assert first.broker.kept == 1


async def retained_in(house: Gateway, topic: str) -> bytes | None:
    kept = house.broker.retained_at(topic)
    return None if kept is None else kept.payload


async def published(writer: Client, topic: str, payload: bytes) -> None:
    await acknowledged(writer, Publish(topic, payload, 1, True, packet_id=1))


@pytest.mark.parametrize("topic", ["lamps/1", "hush/home/lamps/1"])
async def test_what_was_published_here_is_deleted_in_other_houses_too(tmp_path: Path, topic: str) -> None:
    async with houses(tmp_path, {"lamps/#": "home"}) as (_, two, first, second):
        await listening(two, second, "hush/home/#")
        await published(await first.connect("writer"), topic, b"on")
        await until(lambda: second.broker.retained == 1)
        (found, _) = await ask(first, RetainedQuestion(filter=topic))
        assert isinstance(found, RetainedLine)
        assert (found.user, found.travels) == ("", True)
        assert await ask(first, PurgeRequest(filter=topic)) == [Done(count=1, travelling=1)]
        await until(lambda: second.broker.retained == 0)
        await until(lambda: first.broker.retained == 0)


async def test_a_deletion_goes_behind_what_waits_for_the_daemon(tmp_path: Path) -> None:
    """What is retained with the daemon's answer does not come back behind the deletion."""
    topic = "hush/home/a"
    async with houses(tmp_path) as (one, two, first, second):
        await listening(two, second, "hush/home/#")
        writer = await first.connect("writer")
        await published(writer, topic, b"old")
        one.daemon.stop()
        await writer.send(Publish(topic, b"new", 1, True, packet_id=2))
        await trio.sleep(0.1)
        assert await ask(first, PurgeRequest(filter="#")) == [Done(count=1, travelling=1)]
        assert await retained_in(first, topic) == b"old", "other houses have it, too"
        async with trio.open_nursery() as nursery:
            await one.daemon.start(nursery)
            await until(lambda: first.broker.retained == second.broker.retained == 0)
            assert len(one.daemon.network.messages) == 3
            nursery.cancel_scope.cancel()


async def test_what_came_from_another_house_is_deleted_here_alone_until_it_is_published_again(
    tmp_path: Path,
) -> None:
    async with houses(tmp_path, {"lamps/#": "home"}) as (one, _, first, second):
        await listening(one, first, "lamps/#")
        writer = await second.connect("writer")
        await published(writer, "hush/home/lamps/1", b"on")
        await until(lambda: first.broker.retained == 2)
        (found, *_) = await ask(first, RetainedQuestion(filter="lamps/#"))
        assert isinstance(found, RetainedLine)
        assert found.user is None
        assert await ask(first, PurgeRequest(filter="lamps/#")) == [Done(count=1, elsewhere=1)]
        assert first.broker.retained == 0, "by all of its names"
        assert second.broker.retained == 1
        assert len(one.daemon.network.messages) == 1, "nothing of it went out"
        await published(writer, "hush/home/lamps/1", b"off")
        await until(lambda: first.broker.retained == 2)
        assert await retained_in(first, "lamps/1") == b"off"


async def test_what_the_network_does_not_take_stays(tmp_path: Path) -> None:
    """An alias that was taken out since has no way by which other houses could hear."""
    async with houses(tmp_path) as (one, _, first, _):
        await published(await first.connect("writer"), "hush/home/a", b"x")
        refuse: Any = lambda publication: Reason.QUOTA_EXCEEDED  # noqa: E731
        first.broker._beyond.publish = refuse  # type: ignore[method-assign]
        assert await ask(first, PurgeRequest(filter="#")) == [Done(count=0, refused=1)]
        assert first.broker.retained == 1
        assert isinstance(one, House)


async def test_what_is_older_than_what_was_deleted_does_not_come_back(tmp_path: Path) -> None:
    """A house elsewhere says three things; the second comes behind the purge, and the fourth is newer."""
    async with houses(tmp_path, order_wait=1) as (one, two, first, _), elsewhere(two) as other:
        reader = await listening(one, first, "hush/home/#")
        for number in (1, 3):
            await other.says(number, b"%d" % number, retain=True)
        assert [(await reader.message()).payload for _ in range(2)] == [b"1", b"3"]
        assert await ask(first, PurgeRequest(filter="#")) == [Done(count=1, elsewhere=1)]
        assert (await reader.message()).payload == b""
        await other.says(2, b"2", retain=True)
        await until(lambda: one.counters.as_dict()["network_late"] == 1)
        assert first.broker.retained == 0
        await other.says(4, b"4", retain=True)
        assert (await reader.message()).payload == b"4"
        assert await retained_in(first, "hush/home/a") == b"4"
