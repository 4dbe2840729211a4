"""Subscribing takes what relays that are there take to answer, and not what is waited for others."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hosted_network import LONG, box_of, hosts_of, in_use
from small_network import DAY_SECONDS, EPOCH_SECONDS, ONE, Ear, Node, SmallNetwork, small_network, until

from hushcast_overlay.relay.boxes.owners import OwnerRequests
from hushcast_overlay.relay.parcel_forwarding import Passage
from hushcast_overlay.routes.host_link import ANSWER_WITHIN, HostLink
from hushcast_overlay.routes.route import LATEST_RENEWAL
from hushcast_overlay.routes.upkeep import OTHERS_WITHIN
from hushcast_protocol.base.versions.manner import NEWEST
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import Interest
from hushcast_protocol.overlay.box_frames import Hold, HoldAnswer
from hushcast_protocol.overlay.elements import ORIGIN

ANSWERED_WITHIN = 4.0  # virtual seconds: a link to the host, and two down the tree, none of which was there

PATIENCE = 90.0  # virtual seconds: two levels wait for those below, and all are told directly then
ATTEMPTS_WITHIN = 25.0  # virtual seconds: two attempts to reach who lets one wait


async def subscribed(net: SmallNetwork, node: Node) -> Ear:
    """Subscribe as an application does: until it is told, and not until all relays were."""
    return Ear(net, await node.daemon.service.subscribe(Interest(ONE)))


@pytest.mark.parametrize("away", [0, 1, 2])
async def test_relays_that_are_away_hold_up_nobody(away: int) -> None:
    async with small_network(relays=10, clients=1, seed=4, epoch=LONG) as net:
        silent = {relay.id for relay in net.relays[:away]}
        for relay in net.relays[:away]:
            relay.gate.shut()
        began = trio.current_time()
        ear = await subscribed(net, net.clients[0])
        took = trio.current_time() - began
        assert hosts_of(net, net.clients[0])[0].id not in silent, "else it is waited for the second"
        assert took < ANSWERED_WITHIN, "a top relay's word is enough"
        (planned,) = net.clients[0].route().planned.values()
        assert planned.reaches_root
        assert 0 < ear.feed.nodes <= net.seats - away
        await until(lambda: planned.unconfirmed == silent, OTHERS_WITHIN, "all others are told")
        assert net.clients[0].daemon.service.subscriptions()[0]["nodes"] == net.seats - away


async def test_top_relays_that_pass_nothing_on_hold_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Passage.run

    async def keep(self: Passage) -> list[bytes]:
        if self._waiting and self._previous != ORIGIN:  # the host's are from its owner, and it passes them on
            await trio.sleep_forever()
        return await run(self)

    async with small_network(relays=10, clients=1, seed=4, epoch=LONG) as net:
        with monkeypatch.context() as keeping:
            keeping.setattr(Passage, "run", keep)
            with trio.fail_after(ANSWERED_WITHIN):
                ear = await subscribed(net, net.clients[0])
            assert 0 < ear.feed.nodes <= NEWEST.told_ahead, (
                "who was told ahead has answered, and nobody else can"
            )
            (planned,) = net.clients[0].route().planned.values()
        await until(lambda: not planned.unconfirmed, PATIENCE, "all others are told directly")


async def test_tomorrow_holds_up_nobody() -> None:
    async with small_network(clients=1, later=14) as net:
        midnight = net.calendar.day_start(net.calendar.day(net.now) + 1)
        await net.sleep_until(midnight - LATEST_RENEWAL * DAY_SECONDS + EPOCH_SECONDS)
        with trio.move_on_after(ANSWERED_WITHIN) as too_long:
            await subscribed(net, net.clients[0])
        assert not too_long.cancelled_caught
        (today,) = net.clients[0].route().planned.values()
        assert today.installation.day == net.calendar.day(net.now)
        await until(lambda: len(net.clients[0].route().planned) == 2, DAY_SECONDS / 4, "tomorrow is planned")


async def test_a_first_host_that_is_away_is_tried_twice() -> None:
    async with small_network(relays=10, clients=1, seed=0, epoch=LONG) as net:
        net.relays[0].gate.shut()
        began = trio.current_time()
        await subscribed(net, net.clients[0])
        first, second = hosts_of(net, net.clients[0])
        assert first is net.relays[0]
        assert in_use(net, net.clients[0]) is second
        assert trio.current_time() - began < ATTEMPTS_WITHIN + ANSWERED_WITHIN


async def test_what_enters_at_relays_not_told_yet_comes_once_they_are() -> None:
    async with small_network(relays=10, clients=1, seed=4, epoch=LONG) as net:
        ear = await subscribed(net, net.clients[0])
        (planned,) = net.clients[0].route().planned.values()
        late = [net.relay(relay) for relay in sorted(planned.unconfirmed)]
        assert len(late) >= len(planned.installation.tree.parents) - NEWEST.told_ahead
        for number, relay in enumerate(late):
            await net.drop_at(relay, ONE, Content(b"%d" % number))
        await ear.hears(len(late))
        await trio.sleep(OTHERS_WITHIN)
        assert sorted(ear.payloads) == sorted(b"%d" % number for number in range(len(late)))


async def test_a_host_that_refuses_makes_words_of_relays_count_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refuse(self: OwnerRequests, box: bytes, frame: Hold) -> HoldAnswer:
        return HoldAnswer(frame.number, "quota")

    async with small_network(relays=10, clients=1, seed=4, epoch=LONG) as net:
        subscriber = net.clients[0]
        with monkeypatch.context() as refusing, trio.move_on_after(NEWEST.longest_pause):
            refusing.setattr(OwnerRequests, "hold", refuse)
            await subscribed(net, subscriber)
        route = subscriber.route()
        assert not route.ready.is_set()
        assert net.count("parcels_opened") > 0, "they were told"
        assert [planned.nodes for planned in route.planned.values()] == [0]
        with trio.fail_after(2 * NEWEST.longest_pause):
            await subscribed(net, subscriber)


async def test_a_hold_that_is_lost_is_said_again(monkeypatch: pytest.MonkeyPatch) -> None:
    hold, asked = OwnerRequests.hold, []

    async def lose(self: OwnerRequests, box: bytes, frame: Hold) -> HoldAnswer:
        asked.append(frame)
        if len(asked) == 1:
            await trio.sleep_forever()
        return await hold(self, box, frame)

    monkeypatch.setattr(OwnerRequests, "hold", lose)
    async with small_network(relays=10, clients=1, seed=4, epoch=LONG) as net:
        began = trio.current_time()
        await subscribed(net, net.clients[0])
        assert trio.current_time() - began > ANSWER_WITHIN, "nothing else says that the box is there"
        assert len(asked) == 2


async def test_a_host_is_asked_to_hold_before_it_passes_on_and_answers_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    hold, pass_on, answer = HostLink.hold, HostLink.pass_on, OwnerRequests.hold

    async def held(self: HostLink, *args: Any) -> Any:
        try:
            return await hold(self, *args)
        finally:
            said.append("answered")

    async def passed_on(self: HostLink, *args: Any) -> Any:
        said.append("passed on")
        return await pass_on(self, *args)

    async def asked(self: OwnerRequests, *args: Any) -> Any:
        said.append("asked")
        return await answer(self, *args)

    async with small_network(relays=10, clients=1, seed=4, epoch=LONG) as net:
        monkeypatch.setattr(HostLink, "hold", held)
        monkeypatch.setattr(HostLink, "pass_on", passed_on)
        monkeypatch.setattr(OwnerRequests, "hold", asked)
        subscriber = net.clients[0]
        (await subscriber.subscribe(Interest(ONE))).close()
        assert said[0] == "passed on", "what is behind it on the link waits for no answer"
        assert said.index("asked") < said.index("answered")

        said.clear()  # of a tree by which messages come, all waits until the host holds
        (planned,) = subscriber.route().planned.values()
        _, *others = planned.installation.tree.parents
        planned.unconfirmed |= set(others)
        planned.due |= set(others)
        box_of(subscriber).host(in_use(net, subscriber).id).elements.clear()
        subscriber.route().stirred.set()
        await until(lambda: not planned.unconfirmed, OTHERS_WITHIN)
        assert said[:2] == ["asked", "answered"]
