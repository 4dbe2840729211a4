"""A stranger's parcels name hundreds of others to pass on to: no roster lists them, or they never answer.

He pays a connection for each and closes it. He wants the relay to start tasks and dial for minutes, and to
stall: whatever else runs on the same machine then answers late, and whoever stalls relays in turn learns
where it runs.
"""

from __future__ import annotations

import pytest
import trio
from small_network import ONE, Node, SmallNetwork, small_network, until

from hushcast_overlay.relay import parcel_forwarding
from hushcast_overlay.relay.parcel_forwarding import MAX_UNDER_WAY, STRANGERS_SHARE
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.overlay.confirmations import room
from hushcast_protocol.overlay.elements import ORIGIN
from hushcast_protocol.overlay.frames import ParcelAnswer, ParcelFrame
from hushcast_protocol.overlay.leases import Withdraw
from hushcast_protocol.overlay.parcels import MAX_FANOUT, MAX_PATIENCE, OnwardParcel, Parcel, seal_parcel


def a_parcel(net: SmallNetwork, relay: Node, below: list[bytes]) -> bytes:
    """A withdrawal of nothing that holds something that does not open for each of others."""
    assert relay.identity is not None
    draw = net.env.randomness
    onward = tuple(OnwardParcel(one, draw(200)) for one in below)
    epoch = net.calendar.epoch(net.now)
    parcel = Parcel(net.net.id, relay.id, epoch, Withdraw(draw(16)), MAX_PATIENCE, onward, draw(16))
    return seal_parcel(parcel, relay.identity.parcel_key.public(), draw)


async def hand_in(net: SmallNetwork, relay: Node, sealed: bytes) -> ParcelAnswer:
    channel = await net.knock(relay)
    await channel.send(ParcelFrame(0, sealed, None))
    answer = await channel.one(120)
    assert isinstance(answer, ParcelAnswer)
    await channel.aclose()
    return answer


def peers_of(relay: Node) -> int:
    assert relay.daemon.overlay.relay is not None
    return len(relay.daemon.overlay.relay.peers._peers)


def under_way(relay: Node) -> int:
    assert relay.daemon.overlay.relay is not None
    return len(relay.daemon.overlay.relay.parcels._passing)


def tasks() -> int:
    return trio.lowlevel.current_statistics().tasks_living


async def test_what_no_roster_lists_costs_no_work_and_is_answered_at_once() -> None:
    async with small_network(relays=3, clients=0) as net:
        relay, other, last = net.relays
        before, peers = tasks(), peers_of(relay)
        nobody = [net.env.randomness(32) for _ in range(MAX_FANOUT - 1)]
        began = trio.current_time()
        sealed = a_parcel(net, relay, [*nobody, other.id])
        answer = await hand_in(net, relay, sealed)
        assert trio.current_time() - began < 5
        assert answer.refused is None
        assert len(answer.confirmations) == room(len(sealed))
        assert other.count("refused_form") == 1, "what goes to a listed relay is passed on"
        for _ in range(10):
            channel = await net.knock(relay)
            await channel.send(ParcelFrame(0, a_parcel(net, relay, nobody), None))
        await trio.sleep(2)
        assert tasks() < before + 60
        assert peers_of(relay) <= peers + 1
        assert last.count("refused_form") == 0


async def test_a_parcel_that_passes_on_to_one_relay_again_and_again_is_refused() -> None:
    async with small_network(relays=3, clients=0) as net:
        relay, other, _ = net.relays
        for below in ([other.id] * MAX_FANOUT, [relay.id]):
            answer = await hand_in(net, relay, a_parcel(net, relay, below))
            assert answer == ParcelAnswer(0, "form", ())
        assert relay.count("parcels_opened") == 0
        assert other.count("refused_form") == 0


async def test_what_a_stranger_started_ends_with_his_connection() -> None:
    async with small_network(relays=4, clients=0) as net:
        relay, *others = net.relays
        for other in others:
            other.gate.shut()  # they are there, and never answer
        before = tasks()
        channel = await net.knock(relay)
        await channel.send(ParcelFrame(0, a_parcel(net, relay, [other.id for other in others]), None))
        await until(lambda: under_way(relay) == 3, 5.0)
        await until(lambda: peers_of(relay) >= 3, 5.0)
        await channel.aclose()
        await until(lambda: under_way(relay) == 0, 2.0)
        await until(lambda: peers_of(relay) == 0, 2.0, "nobody is dialled for nobody")
        await until(lambda: tasks() <= before + 3, 40.0)


async def test_what_a_relay_started_ends_with_its_link() -> None:
    async with small_network(relays=4, clients=0) as net:
        relay, hostile, *others = net.relays
        for other in others:
            other.gate.shut()
        assert hostile.identity is not None
        channel = await net.knock(relay, hostile.identity.seed)
        await channel.send(ParcelFrame(1, a_parcel(net, relay, [other.id for other in others]), None))
        await until(lambda: under_way(relay) == 2, 5.0)
        await channel.aclose()
        await until(lambda: under_way(relay) == 0, 2.0)


async def test_over_the_cap_parcels_are_refused_before_their_instruction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parcel_forwarding, "STRANGERS_SHARE", 4)
    async with small_network(relays=4, clients=1) as net:
        relay, *others = net.relays
        below = [other.id for other in others]
        for other in others:
            other.gate.shut()
        channel = await net.knock(relay)
        await channel.send(ParcelFrame(0, a_parcel(net, relay, below), None))
        await until(lambda: under_way(relay) == 3, 5.0)
        opened = relay.count("parcels_opened")
        answer = await hand_in(net, relay, a_parcel(net, relay, below))
        assert answer.refused == "quota"
        assert answer.confirmations == ()
        assert relay.count("parcels_opened") == opened
        # What is for this relay alone, or fits, is taken all along.
        assert (await hand_in(net, relay, a_parcel(net, relay, []))).refused is None
        await channel.aclose()
        for other in others:
            other.gate.open()
        await until(lambda: under_way(relay) == 0, 5.0)
        assert (await hand_in(net, relay, a_parcel(net, relay, below))).refused is None


async def test_shares_leave_room_for_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parcel_forwarding, "ONE_HOPS_SHARE", MAX_UNDER_WAY)  # `test_one_silent_hop.py`
    async with small_network(relays=3, clients=0) as net:
        relay, one, other = net.relays
        assert relay.daemon.overlay.relay is not None
        rooms = relay.daemon.overlay.relay.parcels._passing
        epoch = net.calendar.epoch(net.now)
        onward = (OnwardParcel(one.id, b""), OnwardParcel(other.id, b""))
        parcel = Parcel(net.net.id, relay.id, epoch, Withdraw(bytes(16)), 0, onward, bytes(16))
        for previous, share in ((ORIGIN, STRANGERS_SHARE), (one.id, parcel_forwarding.RELAYS_SHARE)):
            for _ in range(share // 2):
                rooms.reserve(parcel, previous)
            with pytest.raises(Refusal, match="quota"):
                rooms.reserve(parcel, previous)
        rooms.reserve(parcel, other.id)
        assert len(rooms) <= MAX_UNDER_WAY


async def test_honest_trees_are_installed_while_strangers_do_all_that() -> None:
    async with small_network(relays=6, clients=1) as net:
        stop = trio.CancelScope()

        async def strangers() -> None:
            with stop:
                while True:
                    for relay in net.relays:
                        nobody = [net.env.randomness(32) for _ in range(MAX_FANOUT)]
                        channel = await net.knock(relay)
                        await channel.send(ParcelFrame(0, a_parcel(net, relay, nobody), None))
                        await channel.aclose()
                    await trio.sleep(0.5)

        net.nursery.start_soon(strangers)
        await net.clients[0].listen()
        await until(lambda: net.each_seat_holds(1), 60)
        stop.cancel()
        assert net.count("internal_errors") == 0


async def test_parcels_that_wait_keep_no_message_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waits for a relay that never answers, for longer than anybody waits for a receipt."""
    monkeypatch.setattr("hushcast_overlay.relay.strangers.MAX_ANSWERING", 8)
    async with small_network(relays=3, clients=1, origins=1) as net:
        ear = await net.clients[0].listen()
        (planned,) = net.clients[0].route().planned.values()
        relay, other = map(net.relay, planned.installation.tree.parents)
        assert planned.installation.tree.parents == {relay.id: None, other.id: relay.id}
        other.gate.shut()
        for _ in range(10):
            channel = await net.knock(relay)
            await channel.send(ParcelFrame(0, a_parcel(net, relay, [other.id]), None))
        await until(lambda: under_way(relay) == 8, 10.0)
        await net.drop_at(relay, ONE, Content(b"x"))
        await ear.hears(1)
