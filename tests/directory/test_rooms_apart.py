"""What strangers ask of the directory takes no place of listed relays, nor of who wants a roster."""

from __future__ import annotations

from contextlib import suppress

import pytest
import trio
from directory_bench import DIRECTORY, EPOCH, NETWORK, Bench, bench, relay_seed

from hushcast_directory.server import directory_server, reachability_checks
from hushcast_directory.server.directory_server import REQUEST_TIMEOUT, ROSTER_WITHIN
from hushcast_directory.server.reachability_checks import REACH_WITHIN
from hushcast_protocol.authorities.directory_requests import (
    MAX_DIRECTORY_ANSWER,
    Fetch,
    decode_directory_answer,
)
from hushcast_protocol.base.addresses import Address, memory_address
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.versions.wires import OtherWire, WireRange, spoken
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import Channel, accept_channel, open_channel

FEW = 4
MANY = 20


async def asker(made: Bench) -> Channel[object]:
    """Open a link to the directory and ask nothing yet."""
    link = Link.initiate(NETWORK.id, DIRECTORY.public(), made.env.randomness, MAX_DIRECTORY_ANSWER)
    address = memory_address(DIRECTORY.public())
    channel, _ = await open_channel(made.wires.transport(), address, "x", link, decode_directory_answer)
    return channel


async def slow_address(made: Bench, number: int) -> list[int]:
    """Open relay `number`'s address, where nothing is ever said; return the list of those who knocked."""
    listener = await made.wires.transport().listen(relay_seed(number))
    knocks: list[int] = []

    async def silent(stream: trio.abc.Stream) -> None:
        knocks.append(number)
        await trio.sleep_forever()

    made.nursery.start_soon(listener.serve, silent)
    return knocks


async def hand_in(made: Bench, descriptor: Signed) -> None:
    with suppress(Refusal, TransportError):
        await made.client().register(descriptor)


async def registers_soon(made: Bench, number: int, within: float) -> bool:
    with trio.move_on_after(within):
        await made.register(number)
        return True
    return False


async def test_who_says_nothing_is_shut_out_in_time() -> None:
    async with bench(1) as made:
        channel = await asker(made)
        before = trio.current_time()
        assert not await channel.receive()
        assert trio.current_time() - before <= REQUEST_TIMEOUT


async def test_who_takes_no_roster_keeps_nobody_from_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_server, "MAX_FETCHES", FEW)
    async with bench(2) as made:
        greedy = [await asker(made) for _ in range(MANY)]
        for channel in greedy:
            await channel.send(Fetch(None))
        await trio.sleep(1)
        with trio.fail_after(3):
            assert (await made.client().roster(None)).heads


async def test_a_roster_that_nobody_reads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench() as made:
        channel = await asker(made)
        await channel.send(Fetch(None))
        monkeypatch.setattr("hushcast_runtime.transports.memory.MAX_IN_FLIGHT", -1)  # nothing fits now
        before = trio.current_time()
        with pytest.raises(TransportError):
            await channel.one(2 * ROSTER_WITHIN)
        assert trio.current_time() - before == pytest.approx(ROSTER_WITHIN, abs=1)


async def test_listed_relays_renew_while_strangers_fill_the_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reachability_checks, "MAX_CHECKS", FEW)
    async with bench(2) as made:
        for number in range(10, 10 + MANY):
            await slow_address(made, number)
            made.nursery.start_soon(hand_in, made, made.descriptor(number))
        await trio.sleep(2)
        for number in range(2):
            assert await registers_soon(made, number, 3.0)
        await made.relay(5)
        assert not await registers_soon(made, 5, 3.0)  # a newcomer waits among newcomers


async def test_slow_addresses_are_given_up_and_newcomers_get_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reachability_checks, "MAX_CHECKS", FEW)
    async with bench(1) as made:
        for number in range(10, 10 + 2 * FEW):
            await slow_address(made, number)
            made.nursery.start_soon(hand_in, made, made.descriptor(number))
        await trio.sleep(2)
        await made.relay(5)
        assert await registers_soon(made, 5, 2 * REACH_WITHIN + 3)


async def test_newcomers_beyond_those_that_wait_are_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reachability_checks, "MAX_CHECKS", 1)
    monkeypatch.setattr(reachability_checks, "MAX_WAITING", FEW)
    async with bench(1) as made:
        told: list[str] = []

        async def knock(number: int) -> None:
            try:
                await made.register(number)
            except (Refusal, TransportError) as error:
                told.append(str(error))

        for number in range(10, 10 + MANY):
            await slow_address(made, number)
            made.nursery.start_soon(knock, number)
        await trio.sleep(3)
        assert len(told) == MANY - 1 - FEW
        assert set(told) == {"too many newcomers wait to be reached: try again later"}


async def test_a_relay_is_reached_once_at_a_time() -> None:
    async with bench(1) as made:
        knocks = await slow_address(made, 7)
        made.nursery.start_soon(hand_in, made, made.descriptor(7))
        await trio.sleep(2)
        with pytest.raises(Refusal, match="already"):
            await made.register(7)
        assert knocks == [7]
        await trio.sleep(REACH_WITHIN)
        with pytest.raises(Refusal, match="in time"):
            await made.register(7)
        assert knocks == [7, 7]


async def test_what_a_roster_shows_can_be_handed_in_by_anybody_and_starts_nothing() -> None:
    async with bench() as made:
        address = await made.relay(1)
        signed = made.descriptor(1)
        await made.client().register(signed)
        del made.wires.listeners[address]  # nobody could reach it any more
        await made.client().register(signed)
        await trio.sleep(3 * EPOCH)
        with pytest.raises(Refusal, match="expired"):
            await made.client().register(signed)


# One address is one relay


async def names_at(made: Bench, address: Address) -> set[int]:
    """Which of the first relays are held at an address, in memory and on disk."""
    held = {
        number
        for number in range(10)
        if (known := made.roll._descriptors.get(relay_seed(number).public())) is not None
        and known[0].address == address
    }
    kept = {key for key, _ in await made.store.scan("descriptor")}
    assert {relay_seed(number).public() for number in held} <= kept
    assert len(kept) == len(made.roll._descriptors)
    return held


async def test_the_name_that_answers_at_an_address_is_the_only_one_there() -> None:
    async with bench() as made:
        answering = relay_seed(1)
        listener = await made.wires.transport().listen(relay_seed(1))

        async def answer(stream: trio.abc.Stream) -> None:
            link = Link.respond(NETWORK.id, answering, made.env.randomness, 10_000)
            with suppress(TransportError):
                channel: Channel[bytes] = Channel(stream, link, lambda data: data)
                await channel.handshake()
                await channel.finish()

        made.nursery.start_soon(listener.serve, answer)
        for number in range(1, 6):
            answering = relay_seed(number)
            await made.client().register(made.descriptor(number, address=listener.address))
            assert await names_at(made, listener.address) == {number}
        roster = await made.publish(made.now + EPOCH)
        assert roster.relays.keys() == {relay_seed(5).public()}


async def test_nobody_is_driven_from_an_address_by_a_descriptor_alone() -> None:
    async with bench() as made:
        address = await made.relay(1)
        await made.register(1)
        for number in range(2, 6):
            with pytest.raises(Refusal, match="not reached"):
                await made.client().register(made.descriptor(number, address=address))
        assert await names_at(made, address) == {1}


async def test_what_happens_at_the_door_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_server, "MAX_CONNECTIONS", FEW)
    async with bench(1) as made:
        assert made.server is not None
        counters = made.server._counters
        before = counters.as_dict()
        for _ in range(FEW + 3):
            await asker(made)
        await made.client().roster(None)
        with pytest.raises(Refusal):
            await made.client().register(made.descriptor(8))
        counted = {name: count - before[name] for name, count in counters.as_dict().items()}
        assert counted["connections_dropped"] == 4  # the room was left to ask, and free again
        assert counted["rosters_asked_for"] == 1
        assert counted["registrations_refused"] == 1


async def test_whoever_speaks_another_wire_is_told_and_counted() -> None:
    async with bench(1) as made:
        link = Link.initiate(
            NETWORK.id, DIRECTORY.public(), made.env.randomness, MAX_DIRECTORY_ANSWER, wire=2
        )
        address = memory_address(DIRECTORY.public())
        with pytest.raises(OtherWire, match="the other end speaks wire 1"):
            await open_channel(made.wires.transport(), address, "x", link, decode_directory_answer)
        assert made.server is not None
        assert made.server._counters["links_of_other_wires"] == 1
        (finding,) = made.server.other_wires.examine()
        assert finding.found == "a peer speaks wire 2, and this program wire 1"


async def test_a_relay_of_another_wire_hears_why_it_is_not_listed() -> None:
    async with bench() as made:
        listener = await made.wires.transport().listen(relay_seed(1))

        async def answer(stream: trio.abc.Stream) -> None:
            seed, speaks = relay_seed(1), WireRange(2, 2)
            link = Link.respond(NETWORK.id, seed, made.env.randomness, 10_000, speaks=speaks)
            with suppress(OtherWire, TransportError):
                await accept_channel(stream, link, decode_directory_answer)

        made.nursery.start_soon(listener.serve, answer)
        with pytest.raises(Refusal, match="not reached at its address: the other end speaks wire 2"):
            await made.client().register(made.descriptor(1, address=listener.address))
        assert made.server is not None
        assert made.server._counters["links_of_other_wires"] == 1


async def test_a_relay_is_reached_in_the_newest_wire_that_it_says_to_speak() -> None:
    """What it says of itself is worth what was tried: who answers in no wire that is spoken here is none."""
    async with bench(1) as made:
        asked: list[int] = []
        listener = await made.wires.transport().listen(relay_seed(1))

        async def answer(stream: trio.abc.Stream) -> None:
            link = Link.respond(
                NETWORK.id, relay_seed(1), made.env.randomness, MAX_DIRECTORY_ANSWER, speaks=WireRange(1, 9)
            )
            with suppress(PeerError, TransportError):
                await accept_channel(stream, link, decode_directory_answer)
                asked.append(link.wire)

        made.nursery.start_soon(listener.serve, answer)
        for speaks in (WireRange(1, 9), spoken()):
            signed = made.descriptor(1, address=listener.address, speaks=speaks)
            await made.client().register(signed)
            assert asked.pop() == spoken().highest
            await trio.sleep(2)
        later = made.descriptor(1, address=listener.address, speaks=WireRange(2, 9))
        with pytest.raises(Refusal, match="this network speaks wire 1, and the relay wires 2 to 9"):
            await made.client().register(later)
        assert asked == []
