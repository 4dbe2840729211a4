"""Probes over a whole network: what they find out, and that subscribers tell each other what they miss."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from small_network import DAY_SECONDS, ONE, Node, small_network, until

from hushcast_overlay.routes.coverage import OverlayCoverage
from hushcast_overlay.routes.probes import PROBE_WITHIN
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.messages import Message, padded_size
from hushcast_protocol.content.payload_sizes import PADDED_SIZES
from hushcast_protocol.content.reports import REPORTED_WITHIN, SETTLED, decode_report
from hushcast_protocol.content.topics import parse_topic
from hushcast_protocol.overlay.coverage import MessageForm, ProbePath
from hushcast_protocol.overlay.forwarding import ForwardingDecision, ForwardingOutcome

pytestmark = pytest.mark.slow

EPOCH = 1200  # seconds
MANY = {"probes_an_epoch": 60.0, "origins": 1, "epoch": EPOCH}


class Loses:
    """A router that confirms everything and sends nothing."""

    def route(self, *_: object) -> ForwardingDecision:
        return ForwardingDecision(ForwardingOutcome.DUPLICATE)

    def entry(self, message: Message) -> tuple[bytes, ...]:
        return ()

    def unsent(self, *_: object) -> None:
        pass

    def use_label(self, label: bytes) -> None:
        pass


def make_it_lose(relay: Node) -> None:
    assert relay.daemon.overlay.relay is not None
    relay.daemon.overlay.relay.forwarding._router = Loses()  # type: ignore[assignment]


async def test_all_probes_of_a_sound_network_arrive() -> None:
    async with small_network(relays=8, clients=1, **MANY) as net:
        await net.clients[0].listen()
        await trio.sleep(EPOCH)
        told = net.clients[0].route().coverage.describe()
        assert told["probes"] >= 30
        assert told["share"] == 1.0
        assert told["suspects"] == []
        assert told["low"] > 0.85


async def test_a_relay_that_loses_messages_is_found_and_loses_its_seat() -> None:
    async with small_network(relays=12, clients=2, **MANY) as net:
        ear = await net.clients[0].listen()
        subscription = net.clients[0].route()
        (planned,) = subscription.planned.values()
        top = next(relay for relay, above in planned.installation.tree.parents.items() if above is None)
        make_it_lose(net.relay(top))
        await until(lambda: subscription.coverage.suspects() == [top], 3 * EPOCH, "it is found")
        await until(lambda: not planned.installation.tree.children.get(top), 2 * EPOCH, "it has no children")
        await trio.sleep(60)
        others = [relay for relay in net.relays if relay.id != top]
        for number, relay in enumerate(others):
            await net.drop_at(relay, ONE, Content(b"%d" % number))
        await ear.hears(len(others))


async def test_a_host_that_loses_messages_makes_nobody_else_a_suspect() -> None:
    async with small_network(relays=12, clients=1, **MANY) as net:
        await net.clients[0].listen()
        subscription = net.clients[0].route()
        assert subscription.box is not None
        relay = net.relay(subscription.box.hosts.current).daemon.overlay.relay
        assert relay is not None
        links = relay.forwarding._next_hops._box_links
        enqueue, count = links.enqueue, iter(range(10**6))

        def lose_half(placed: Any) -> None:
            if next(count) % 2:
                enqueue(placed)

        links.enqueue = lose_half  # type: ignore[method-assign]
        await trio.sleep(2 * EPOCH + PROBE_WITHIN)
        told = subscription.coverage.describe()
        assert told["delivered"] < 0.8
        assert told["suspects"] == []


async def test_what_a_host_does_not_tell_of_blames_nobody() -> None:
    """While its link is down, and while it says that it could not tell all."""
    coverage, form = OverlayCoverage(), MessageForm(1, 1)
    way = {b"o" * 32: ProbePath((b"o" * 32,), frozenset([b"o" * 32]))}
    for number, unseen in enumerate((lambda: coverage.watch(False), coverage.lose_sight)):
        message = bytes([number]) * 32
        coverage.watch(True)
        coverage.begin(message, 0.0, form).note_try(b"o" * 32)
        unseen()
        coverage.settle(message, way)
        coverage.arrived(message)
    coverage.watch(False)
    coverage.begin(b"l" * 32, 0.0, form).note_try(b"o" * 32)
    coverage.settle(b"l" * 32, way)
    coverage.give_up(1.0)
    await coverage.judge()
    assert coverage.describe()["delivered"] == pytest.approx(2 / 3, abs=1e-3)
    assert not coverage.losses()


async def test_probes_are_not_shown_and_show_nothing_outside() -> None:
    """Same tokens, same sizes, same seal: an origin cannot tell a probe from a publication."""
    topic = parse_topic("fires")
    async with small_network(relays=3, clients=2, **MANY) as net:
        ear = await net.clients[0].listen(topic)
        seen = []
        for relay in net.relays:
            assert relay.daemon.overlay.relay is not None
            inner = relay.daemon.overlay.relay.drops.take

            async def spy(message, inner=inner):  # type: ignore[no-untyped-def]
                seen.append(message)
                return await inner(message)

            relay.daemon.overlay.relay.drops.take = spy  # type: ignore[method-assign]
        await net.clients[1].daemon.service.publish(topic, Content(b"true"))
        await trio.sleep(EPOCH)
        assert ear.payloads == [b"true"]
        sizes = [padded_size(message) for message in seen]
        assert len(sizes) > 40
        assert set(sizes) <= set(PADDED_SIZES)
        assert sizes.count(PADDED_SIZES[0]) > 0.8 * len(sizes)  # a few have any form
        assert len({len(message.tokens) for message in seen}) == 1
        assert len({message.tokens[0] for message in seen}) == 1
        assert len({message.trail for message in seen}) == 1


async def test_a_subscriber_learns_what_another_one_got_and_it_did_not() -> None:
    async with small_network(relays=6, clients=3, **MANY) as net:
        whole, torn, publisher = net.clients
        whole_ear, torn_ear = await whole.listen(), await torn.listen()
        await trio.sleep(REPORTED_WITHIN + 2 * SETTLED)
        inbox = torn.route().wanted.inbox
        put = inbox.put

        def lose(*_: object) -> bool:
            return False

        inbox.put = lose  # type: ignore[method-assign, assignment]
        await publisher.daemon.service.publish(ONE, Content(b"lost"))
        await whole_ear.hears(1)
        await trio.sleep(30)
        inbox.put = put  # type: ignore[method-assign]
        await publisher.daemon.service.publish(ONE, Content(b"there"))
        await torn_ear.hears(1)
        await until(lambda: torn.count("gaps_found") == 1, 2 * EPOCH, "the gap is found")
        await trio.sleep(PROBE_WITHIN)
        assert torn.count("gaps_found") == len(torn_ear.gaps) == 1
        assert whole.count("gaps_found") == 0


async def test_who_comes_later_misses_nothing_of_before() -> None:
    async with small_network(relays=6, clients=3, **MANY) as net:
        first, late, publisher = net.clients
        ear = await first.listen()
        await publisher.daemon.service.publish(ONE, Content(b"before"))
        await ear.hears(1)
        await late.listen()
        await trio.sleep(2 * EPOCH)
        assert late.count("gaps_found") == 0


async def test_messages_of_a_day_that_is_over_are_no_gaps() -> None:
    """Their ids are forgotten some time; reports of them may come later still."""
    async with small_network(relays=6, clients=3, probes_an_epoch=10.0, later=16) as net:
        first, second, publisher = net.clients
        ears = await first.listen(), await second.listen()
        wanted = first.route().wanted
        take, told = wanted._take_report, list[Content]()
        wanted._take_report = told.append  # type: ignore[method-assign]
        over = (net.now // DAY_SECONDS + 2) * DAY_SECONDS  # by then reports count
        await net.sleep_until(over - 3 * SETTLED)
        await publisher.daemon.service.publish(ONE, Content(b"of a day that is over"))
        for ear in ears:
            await ear.hears(1)
        await net.sleep_until(over)
        named = {heard.id for content in told for heard in decode_report(content.payload).heard}
        assert any(map(wanted.knows, named))
        await wanted.lapse(net.calendar.day(net.now))
        assert not any(map(wanted.knows, named))
        for content in told:
            take(content)
        assert first.count("gaps_found") == second.count("gaps_found") == 0
