"""A box that its host can know nothing of is asked for before the host has told how it stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import trio
from cut_network import cut_network
from hosted_network import LONG
from mortal_store import MortalStore
from small_network import ONE, Ear, SmallNetwork, small_network, until

from hushcast_local.topic_keys import TopicKeys
from hushcast_overlay.relay.boxes.owners import OwnerRequests
from hushcast_overlay.relay.lease_store import LeaseStore
from hushcast_overlay.routes.host_link import STANDING_WITHIN, HostLink
from hushcast_protocol.base.versions.manner import NEWEST
from hushcast_protocol.base.wire import Wire
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import Interest
from hushcast_protocol.overlay.box_frames import BoxStanding, Hold, HoldAnswer
from hushcast_protocol.overlay.hops import relay_hop
from hushcast_protocol.overlay.leases import Install, ToHost, ToListedHost, ToRelay
from hushcast_runtime.transports.channel_writer import Writer

WAY = 1.0  # virtual seconds that each stream takes one way
# Two links, owner to host and host to top relay, take a connection and an answer to the hello, there and back
# each; and there and back go the parcel, over both, and the word.
SUBSCRIBES_IN = (2 * (2 + 2) + 2 + 2) * WAY
KILLED_FOR = 5.0
SEATS = 9  # of ten relays


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happens at the two ends of owners' links, in order."""
    order: list[str] = []
    hear, hold = HostLink.hear, OwnerRequests.hold

    async def heard(self: HostLink) -> None:
        await hear(self)
        order.append("told")

    async def asked(self: OwnerRequests, box: bytes, frame: Hold) -> HoldAnswer:
        order.append("asked")
        return await hold(self, box, frame)

    monkeypatch.setattr(HostLink, "hear", heard)
    monkeypatch.setattr(OwnerRequests, "hold", asked)
    return order


async def subscribed(net: SmallNetwork) -> Ear:
    return Ear(net, await net.clients[0].daemon.service.subscribe(Interest(ONE)))


async def publish(net: SmallNetwork, payload: bytes) -> None:
    await net.clients[1].daemon.service.publish(ONE, Content(payload))


async def test_a_new_box_is_asked_for_a_round_trip_sooner(said: list[str]) -> None:
    async with small_network(relays=10, epoch=LONG, seed=4) as net:
        net.wires.delay = lambda: WAY
        began = trio.current_time()
        await subscribed(net)
        assert trio.current_time() - began == pytest.approx(SUBSCRIBES_IN, abs=WAY / 2)
        assert said == ["asked", "told"]


async def test_it_is_on_a_day_that_is_cut_too(said: list[str]) -> None:
    async with cut_network() as net:
        assert net.is_cut(net.today)
        await subscribed(net)
        assert said == ["asked", "told"]


async def test_the_host_is_dialled_while_the_topics_key_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    get = TopicKeys.get

    async def slow(self: TopicKeys, *of: Any) -> Any:
        if not self._keys:
            await trio.sleep(3 * WAY)
        return await get(self, *of)

    async with small_network(relays=10, epoch=LONG, seed=4) as net:
        net.wires.delay = lambda: WAY
        monkeypatch.setattr(TopicKeys, "get", slow)
        began = trio.current_time()
        await subscribed(net)
        assert trio.current_time() - began == pytest.approx(SUBSCRIBES_IN, abs=WAY / 2)


async def test_a_box_that_was_asked_for_before_is_told_of_first(said: list[str]) -> None:
    async with small_network(relays=10, epoch=LONG, seed=4) as net:
        subscriber = net.clients[0]
        await subscribed(net)
        (planned,) = subscriber.route().planned.values()
        await until(lambda: not planned.unconfirmed)
        said.clear()
        await subscriber.restart()
        await until(lambda: "asked" in said, NEWEST.attach_within + NEWEST.retell_within + 5)
        assert said == ["told", "asked"]


async def test_who_is_told_ahead_gets_the_card_with_its_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[bytes, list[type]] = {}
    install = LeaseStore.install

    async def installed(self: LeaseStore, one: Install, *others: Any) -> Any:
        told.setdefault(one.lease, []).append(type(one.next_hop))
        return await install(self, one, *others)

    async with small_network(relays=10, epoch=LONG, seed=4) as net:
        monkeypatch.setattr(LeaseStore, "install", installed)
        subscriber = net.clients[0]
        ear = await subscribed(net)
        (planned,) = subscriber.route().planned.values()
        await until(lambda: not planned.unconfirmed)
        tops = planned.installation.tree.children[None]
        hops = [frozenset(kinds) for kinds in told.values()]
        assert hops.count(frozenset({ToListedHost, ToHost})) == NEWEST.told_ahead, "in whichever order"
        assert hops.count(frozenset({ToHost})) == len(tops) - NEWEST.told_ahead
        assert hops.count(frozenset({ToRelay})) == SEATS - len(tops) == len(hops) - len(tops)
        for top in tops:
            assert any(lease.address for lease in leases_of(net, top)), "for when rosters lack the host"
        await publish(net, b"x")
        assert await ear.hears(1) == [b"x"]


def leases_of(net: SmallNetwork, relay: bytes) -> Iterator[Any]:
    role = net.relay(relay).daemon.overlay.relay
    assert role is not None
    return (lease for lease in role.leases.book.leases() if lease.hop != relay_hop(relay))


async def test_a_host_that_wants_a_dearer_stamp_is_asked_again_when_it_has_told(
    monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    hold, asked = OwnerRequests.hold, []

    async def dear(self: OwnerRequests, box: bytes, frame: Hold) -> HoldAnswer:
        answer = await hold(self, box, frame)
        asked.append(frame)
        return HoldAnswer(frame.number, "stamp") if len(asked) == 1 else answer

    monkeypatch.setattr(OwnerRequests, "hold", dear)
    async with small_network(relays=10, epoch=LONG, seed=4) as net:
        await subscribed(net)
        again = said.index("asked", 1)
        assert said[:again] == ["asked", *["told"] * (again - 1)]
        assert again > 2, "over a link on which the host had told"


@pytest.mark.parametrize("kept_back", [(BoxStanding,), (Wire,)], ids=["answers out of turn", "says nothing"])
async def test_a_host_that_does_not_tell_first_confirms_nothing(
    kept_back: tuple[type, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    post, first = Writer.post, []
    hold, nodes = OwnerRequests.hold, []

    def posted(self: Writer, frame: Wire) -> None:
        if isinstance(frame, BoxStanding):
            first.append(self)
        if first and self is first[0] and isinstance(frame, kept_back):
            return
        post(self, frame)

    async def asked(self: OwnerRequests, box: bytes, frame: Hold) -> HoldAnswer:
        nodes.append([planned.nodes for planned in net.clients[0].route().planned.values()])
        return await hold(self, box, frame)

    async with small_network(relays=10, epoch=LONG, seed=4) as net:
        monkeypatch.setattr(Writer, "post", posted)
        monkeypatch.setattr(OwnerRequests, "hold", asked)
        began = trio.current_time()
        ear = await subscribed(net)
        took = trio.current_time() - began
        assert took > (STANDING_WITHIN if Wire in kept_back else NEWEST.first_pause / 2)
        assert nodes == [[0], [0]], "it was asked, and what it let pass counted for nothing"
        assert ear.feed.nodes > 0
        await publish(net, b"x")
        assert await ear.hears(1) == [b"x"]


@pytest.mark.parametrize("steps", range(12))
async def test_an_owner_that_is_killed_meanwhile_subscribes_and_hears_all_once(steps: int) -> None:
    """At moments a seventh of a second apart, from before the box is on disk until a top relay's word is."""
    async with small_network(relays=6, epoch=LONG, seed=steps) as net:
        subscriber = net.clients[0]
        await subscriber.stop()
        store = subscriber.store = MortalStore()
        await subscriber.start()
        with trio.move_on_after(steps / 7):
            await subscribed(net)
        await subscriber.stop()
        store.die()
        await trio.sleep(KILLED_FOR)
        await subscriber.start()
        ear = await subscriber.listen()
        for number in range(6):
            await publish(net, b"%d" % number)
        await ear.hears(6)
        await trio.sleep(KILLED_FOR)
        assert sorted(ear.payloads) == [b"%d" % number for number in range(6)]
        assert ear.feed.lost() == 0
        assert net.count("messages_without_box") == 0
