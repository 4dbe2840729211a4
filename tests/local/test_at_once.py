"""What applications ask at the same moment, and what ends in the middle of something else."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from fake_carrier import FakeCarrier
from fake_daemon import NETWORK, FakeDaemon
from small_network import BEGIN, ONE, until

from hushcast.control_messages import (
    Answer,
    EndNotice,
    Hello,
    LossNotice,
    MessageNotice,
    StatusRequest,
    TopicSubscribeRequest,
    encode_line,
)
from hushcast_local.application_delivery import ApplicationDelivery
from hushcast_local.settings import InboxSection
from hushcast_local.subscription import kept
from hushcast_protocol.content.bodies import Content, compose
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.payload_sizes import MAX_PAYLOAD
from hushcast_protocol.content.predicates import MAX_TAGS, parse_where
from hushcast_protocol.content.tokens import token, topic_key
from hushcast_protocol.content.topics import Interest, make_topic
from hushcast_runtime.carriers.carrier import Handover
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.transports.lines import Lines

TOKEN = b"an application's own"
LARGE = 20  # of the largest messages: more than a socket's buffer takes
INBOX = ("inbox", "inbox-seen", "inbox-progress")


class SlowReads(MemoryStore):
    """A store that reads as slowly as is asked for, and writes at once."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0
        self.seconds_behind = 0.0  # in which what was read may go

    async def scan(
        self, kind: str, prefix: bytes = b"", after: bytes | None = None, limit: int = -1
    ) -> list[tuple[bytes, bytes]]:
        await trio.sleep(self.seconds)
        found = await super().scan(kind, prefix, after, limit)
        await trio.sleep(self.seconds_behind)
        return found


async def left(store: MemoryStore) -> list[bytes]:
    """Return the keys of all that any inbox has in the store."""
    return [key for kind in INBOX for key, _ in await store.scan(kind)]


@pytest.fixture
def daemon(tmp_path: Path) -> FakeDaemon:
    return FakeDaemon(tmp_path / "control.sock", simulated_environment(1, BEGIN), SlowReads())


async def test_a_request_that_is_ended_while_it_is_told_leaves_no_half_line(daemon: FakeDaemon) -> None:
    """The application reads slowly, ends a subscription, and goes on with its others."""
    async with trio.open_nursery() as nursery:
        await daemon.start(nursery)
        for number in range(LARGE):
            await daemon.put(ONE.name, b"%c" % (97 + number) * MAX_PAYLOAD)
        async with await trio.open_unix_socket(str(daemon.socket)) as stream:
            lines = Lines(stream, 4 * MAX_PAYLOAD)

            async def hear() -> dict[str, object]:
                with trio.fail_after(60):
                    line = await lines.read()
                assert line is not None
                heard: dict[str, object] = json.loads(line)
                return heard

            await lines.write(encode_line(Hello()))
            assert "version" in await hear()
            await lines.write(encode_line(TopicSubscribeRequest(ONE.name, since=0, request=1)))
            await trio.sleep(60)  # the daemon has written what the socket takes, and waits
            await lines.write(encode_line(EndNotice(request=1)))
            await trio.sleep(60)
            await lines.write(encode_line(StatusRequest(request=2)))
            heard = [await hear()]
            while heard[-1]["request"] != 2:
                heard.append(await hear())
        ends = [answer["event"] for answer in heard if answer["event"] not in ("message", "subscribed")]
        assert ends == ["ended", "status"]
        daemon.stop()


async def test_an_application_that_reads_nothing_does_not_keep_the_daemon_from_stopping(
    daemon: FakeDaemon,
) -> None:
    async with trio.open_nursery() as nursery:
        await daemon.start(nursery)
        for number in range(LARGE):
            await daemon.put(ONE.name, b"%c" % (97 + number) * MAX_PAYLOAD)
        async with await trio.open_unix_socket(str(daemon.socket)) as stream:
            lines = Lines(stream, 4 * MAX_PAYLOAD)
            await lines.write(encode_line(Hello()))
            await lines.write(encode_line(TopicSubscribeRequest(ONE.name, since=0, request=1)))
            await trio.sleep(60)
            daemon.stop()
            await until(lambda: not daemon.socket.exists(), 10.0, "it stops")


async def test_a_message_that_is_published_twice_at_once_with_one_token_is_one(daemon: FakeDaemon) -> None:
    """An application that lost its connection asks again while the topic's key is still being made."""
    async with trio.open_nursery() as nursery:
        await daemon.start(nursery)
        ids = []

        async def enqueue() -> None:
            ids.append((await daemon.service.enqueue(ONE, Content(b"x"), token=TOKEN)).id)

        async with trio.open_nursery() as applications:
            applications.start_soon(enqueue)
            applications.start_soon(enqueue)
        assert len(set(ids)) == 1
        await until(lambda: not daemon.service.outbox())
        assert daemon.published == [(ONE.name, b"x")]
        daemon.stop()


async def test_a_daemon_that_stops_while_a_topics_key_is_made_publishes_nothing_more(tmp_path: Path) -> None:
    """Keys are made in threads, which go on: behind them the daemon's own tasks are over."""

    async def compute(function: Callable[..., Any], *args: Any) -> Any:
        with trio.CancelScope(shield=True):
            await trio.sleep(5)
        return function(*args)

    env = dataclasses.replace(simulated_environment(1, BEGIN), compute=compute)
    daemon = FakeDaemon(tmp_path / "control.sock", env)
    async with trio.open_nursery() as nursery:
        await daemon.start(nursery)
        async with trio.open_nursery() as application:
            application.start_soon(daemon.service.enqueue, ONE, Content(b"x"))
            await trio.sleep(1)
            daemon.stop()
            application.cancel_scope.cancel()
        assert await daemon.store.scan("outbox") == []


async def test_a_daemon_that_stops_while_a_subscription_ends_keeps_none_of_its_messages(
    daemon: FakeDaemon,
) -> None:
    store = daemon.store
    assert isinstance(store, SlowReads)
    async with trio.open_nursery() as nursery:
        await daemon.start(nursery)
        other = await daemon.hold("another topic")
        await daemon.put(other.interest.topic.name, b"stays")
        await daemon.put(ONE.name, b"secret")
        store.seconds = 5.0
        async with trio.open_nursery() as application:
            application.start_soon(daemon.service.unsubscribe, ONE)
            await trio.sleep(1)  # it is noted that it ended, and its messages are being looked for
            daemon.stop()
            application.cancel_scope.cancel()
        await until(lambda: not daemon.socket.exists())
        store.seconds = 0.0
        assert [held.interest for held in await kept(store)] == [other.interest]
        await daemon.start(nursery)
        assert {key[:16] for key in await left(store)} == {other.name}
        feed = await daemon.service.subscribe(Interest(other.interest.topic))
        arrival = await feed.next()
        assert isinstance(arrival, tuple)
        assert arrival[1].payload == b"stays"
        daemon.stop()


async def test_an_application_that_leaves_while_a_topic_is_ended_leaves_none_of_it(
    daemon: FakeDaemon,
) -> None:
    store = daemon.store
    assert isinstance(store, SlowReads)
    topic = make_topic("fires", ("kind",))
    wide, narrow = (Interest(topic, parse_where(where, topic.attributes)) for where in ("", "kind = fire"))
    async with trio.open_nursery() as nursery:
        await daemon.start(nursery)
        for interest in (wide, narrow):
            (await daemon.service.subscribe(interest)).close()
        store.seconds = 5.0
        with trio.move_on_after(1):
            await daemon.service.unsubscribe(topic)
        assert daemon.service.subscriptions() == []
        await trio.sleep(60)
        store.seconds = 0.0
        assert await kept(store) == []
        assert await left(store) == []
        daemon.stop()


async def test_messages_that_are_removed_while_those_before_them_are_read_are_told_once(
    daemon: FakeDaemon,
) -> None:
    """Retention overtakes a reader in the middle of a read; then its connection breaks, and it comes back."""
    assert isinstance(daemon.store, SlowReads)
    heard: list[Answer] = []

    async def tell(*answers: Answer) -> None:
        heard.extend(answers)

    async def listen(since: int) -> None:
        with trio.move_on_after(60):
            await ApplicationDelivery(TopicSubscribeRequest(ONE.name, since=since, request=1), tell).run(
                daemon.service
            )

    async with trio.open_nursery() as nursery:
        await daemon.start(nursery)
        subscription = await daemon.hold(ONE.name)
        subscription.inbox.retention = InboxSection(max_bytes=1024**2)
        for _ in range(5):
            await daemon.put(ONE.name, bytes(200_000))
        daemon.store.seconds_behind = 59.0
        nursery.start_soon(listen, 0)
        await trio.sleep(1)
        for _ in range(7):
            await daemon.put(ONE.name, bytes(200_000))
        await trio.sleep(60)
        daemon.store.seconds_behind = 0.0
        assert [told.cursor for told in heard if isinstance(told, MessageNotice)] == [1, 2, 3, 4, 5]
        await listen(max(told.cursor for told in heard if isinstance(told, MessageNotice | LossNotice)))
        assert [told.cursor for told in heard if isinstance(told, MessageNotice)] == [
            1,
            2,
            3,
            4,
            5,
            8,
            9,
            10,
            11,
            12,
        ]
        assert [(told.count, told.cursor) for told in heard if isinstance(told, LossNotice)] == [(2, 7)]
        daemon.stop()


async def test_a_message_that_is_taken_back_as_its_last_try_ends_is_not_given_up(
    daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = trio.Event()

    async def hand_over(carrier: FakeCarrier, message: Message, handover: Handover, *_: object) -> None:
        await tried.wait()
        handover.note_failure("nobody gave a receipt")

    monkeypatch.setattr(FakeCarrier, "hand_over", hand_over)
    async with trio.open_nursery() as nursery:
        await daemon.start(nursery)
        publication = await daemon.service.enqueue(ONE, Content(b"x"))
        calendar = daemon.network.calendar
        await daemon.env.sleep_until(calendar.lapse(calendar.day(BEGIN)) + 1)
        tried.set()
        assert await daemon.service.cancel(publication.id) == ONE.name
        await trio.sleep(1)
        assert daemon.service.outbox() == []
        assert await daemon.store.scan("outbox-state") == []
        daemon.stop()


async def test_copies_that_come_while_their_topics_key_is_made_are_one_message(daemon: FakeDaemon) -> None:
    async with trio.open_nursery() as nursery:
        await daemon.start(nursery)
        subscription = await daemon.hold(ONE.name)
        day = daemon.network.calendar.day(BEGIN) - 1  # whose key nobody has asked for
        key = topic_key(ONE, NETWORK, day)
        message = compose(key, day, (token(key),), Content(b"x"), daemon.env.randomness)
        async with trio.open_nursery() as relays:
            relays.start_soon(subscription.take, [message])
            relays.start_soon(subscription.take, [message])
        reported = subscription.recent.heard(day, 0.0, daemon.env.now())
        assert [heard.id for heard in reported] == [message.id]
        daemon.stop()


async def test_a_subscription_with_more_tags_than_a_message_has_room_for_is_probed(
    daemon: FakeDaemon,
) -> None:
    topic = make_topic("wide", ["a:0..65535", "b:0..65535", "c:0..65535", "d:0..65535"])
    tags = ", ".join(f"{number:032x}" for number in range(MAX_TAGS))
    async with trio.open_nursery() as nursery:
        await daemon.start(nursery)
        wanted = Interest(topic, parse_where(f"tags [{tags}]", topic.attributes))
        feed = await daemon.service.subscribe(wanted)
        await trio.sleep(3600)
        (described,) = await daemon.service.coverage(topic)
        assert described["probes"] > 0
        await daemon.service.enqueue(topic, Content(b"x"), tags=[f"{1:032x}"])
        arrival = await feed.next()
        assert isinstance(arrival, tuple)
        assert arrival[1].payload == b"x"
        daemon.stop()
