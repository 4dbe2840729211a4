"""What cannot be done is refused with a reason for people, and soon enough for them to wait for it."""

from __future__ import annotations

import pytest
import trio
from small_network import EPOCH_SECONDS, ONE, SmallNetwork, small_network, until

from hushcast_local import outbox, subscriber
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.versions.manner import NEWEST
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.payload_sizes import MAX_PAYLOAD
from hushcast_protocol.content.topics import Interest, parse_topic
from hushcast_runtime.storage import spool


async def refusal_of(awaitable: object) -> str:
    with pytest.raises(Refusal) as refused:
        await awaitable  # type: ignore[misc]
    assert "\n" not in refused.value.reason
    return refused.value.reason


async def test_without_a_roster_nothing_can_be_done() -> None:
    async with trio.open_nursery() as nursery:
        net = SmallNetwork(nursery, relays=1, clients=1, seed=1)
        await net.directory.start()
        await net.clients[0].start()
        daemon = net.clients[0].daemon
        assert "no roster yet" in await refusal_of(daemon.service.publish(ONE, Content(b"x")))
        assert "no roster yet" in await refusal_of(daemon.service.subscribe(Interest(ONE)))
        assert daemon.service.subscriptions() == []
        assert not daemon.ready
        status = daemon.status()
        assert (status["ready"], status["roster"], status["role"]) == (False, None, "client")
        await net.relays[0].start()
        await until(lambda: daemon.ready)
        await daemon.service.publish(ONE, Content(b"x"))
        assert net.count("internal_errors") == 0
        nursery.cancel_scope.cancel()


@pytest.mark.slow
async def test_an_empty_roster_is_no_network() -> None:
    async with small_network(relays=2, clients=1) as net:
        for relay in net.relays:
            await relay.stop()
        daemon = net.clients[0].daemon
        await until(
            lambda: daemon.overlay.rosters.newest and not daemon.overlay.rosters.newest.relays,
            30 * EPOCH_SECONDS,
        )
        await net.sleep_until(net.calendar.epoch_start(daemon.overlay.rosters.newest.epoch) + 1)
        assert "lists no relay" in await refusal_of(daemon.service.publish(ONE, Content(b"x")))
        assert "lists no relay" in await refusal_of(daemon.service.subscribe(Interest(ONE)))


@pytest.mark.slow
async def test_relays_in_their_first_epoch_are_no_origins() -> None:
    async with small_network(relays=1, clients=1) as net:
        await net.relays[0].stop()
        daemon = net.clients[0].daemon
        await until(lambda: not daemon.overlay.rosters.newest.relays, 30 * EPOCH_SECONDS)
        newcomer = net.add("newcomer", True)
        net.waits = False
        await newcomer.start()
        await until(lambda: daemon.overlay.rosters.newest.relays, 3 * EPOCH_SECONDS)
        await net.sleep_until(net.calendar.epoch_start(daemon.overlay.rosters.newest.epoch) + 1)
        assert "second epoch" in await refusal_of(daemon.service.publish(ONE, Content(b"x")))
        await net.sleep_until(net.calendar.epoch_start(daemon.overlay.rosters.newest.epoch + 1) + 1)
        await daemon.service.publish(ONE, Content(b"x"))


async def test_dead_origins_are_said_to_be_dead_before_long() -> None:
    async with small_network() as net:
        for relay in net.relays:
            await relay.stop()
        before = trio.current_time()
        reason = await refusal_of(net.clients[0].daemon.service.publish(ONE, Content(b"x")))
        assert reason.startswith(
            "no relay gave a receipt: no daemon answers at this address: the message stays"
        )
        assert trio.current_time() - before < 10


async def test_origins_that_fall_silent_are_given_up() -> None:
    async with small_network() as net:
        for relay in net.relays:
            relay.gate.shut()
        before = trio.current_time()
        assert "no relay gave a receipt" in await refusal_of(
            net.clients[0].daemon.service.publish(ONE, Content(b"x"))
        )
        assert trio.current_time() - before < NEWEST.attempts * (
            NEWEST.receipt_within + NEWEST.longest_delay + 2
        )
        for relay in net.relays:
            relay.gate.open()
        await net.clients[0].daemon.service.publish(ONE, Content(b"x"))


async def test_another_origin_stands_in_for_a_dead_one() -> None:
    async with small_network(relays=3, origins=1) as net:
        ear = await net.clients[0].listen()
        for relay in net.relays[1:]:
            await relay.stop()
        for number in range(6):
            publication = await net.clients[1].daemon.service.publish(ONE, Content(b"%d" % number))
            assert publication.origins == [net.relays[0].id]
        for relay in net.relays[1:]:
            await relay.start()
        assert sorted(await ear.hears(6)) == [b"%d" % number for number in range(6)]


async def test_too_large_a_payload_is_refused_with_its_size() -> None:
    async with small_network(relays=1) as net:
        reason = await refusal_of(net.clients[0].daemon.service.publish(ONE, Content(bytes(MAX_PAYLOAD + 1))))
        assert str(MAX_PAYLOAD) in reason
        assert str(MAX_PAYLOAD + 1) in reason


async def test_too_many_publications_are_refused_and_not_piled_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "MAX_PUBLICATIONS", 70)
    async with small_network(relays=1) as net:
        net.relays[0].gate.shut()
        reasons: list[str] = []

        async def publish() -> None:
            try:
                await net.clients[0].daemon.service.publish(ONE, Content(b"x"))
            except Refusal as refusal:
                reasons.append(refusal.reason)

        async with trio.open_nursery() as nursery:
            for _ in range(80):
                nursery.start_soon(publish)
                await trio.sleep(0.01)
            assert len(reasons) == 10
            assert all("the outbox is full: 70 messages" in reason for reason in reasons)
            net.relays[0].gate.open()
        assert len(reasons) == 10


@pytest.mark.slow
async def test_too_many_subscriptions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriber, "MAX_SUBSCRIPTIONS", 2)
    async with small_network(relays=1) as net:
        daemon = net.clients[0].daemon
        for name in ("a", "b"):
            await daemon.service.subscribe(Interest(parse_topic(name)))
        assert "2 subscriptions" in await refusal_of(daemon.service.subscribe(Interest(parse_topic("c"))))
        await daemon.service.subscribe(Interest(parse_topic("a")))
        await daemon.service.unsubscribe(parse_topic("a"))
        await daemon.service.subscribe(Interest(parse_topic("c")))


async def test_a_full_spool_refuses_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async with small_network(relays=1) as net:
        client, publisher = net.clients
        (await client.daemon.service.subscribe(Interest(ONE))).close()
        await client.stop()  # so that relays have to keep what they took
        monkeypatch.setattr(spool, "MAX_SPOOL", 20_000)
        reason = ""
        accepted = []
        for number in range(40):
            try:
                await publisher.daemon.service.publish(ONE, Content(b"%d" % number))
                accepted.append(b"%d" % number)
                await trio.sleep(1)
            except Refusal as refusal:
                reason = refusal.reason
                break
        assert reason.startswith("relays refuse the message: quota: the message stays in the outbox")
        assert accepted
        for relay in net.relays:
            assert relay.daemon.overlay.relay is not None
            assert relay.daemon.overlay.relay.forwarding._spool.size <= 20_000
        assert net.count("refused_quota") > 0
        await client.start()
        ear = await client.listen()
        late = b"%d" % len(accepted)  # it waited in the outbox until there was room again
        assert sorted(await ear.hears(len(accepted) + 1)) == sorted([*accepted, late])
        await publisher.daemon.service.publish(ONE, Content(b"room again"))
        await until(lambda: b"room again" in ear.payloads)
