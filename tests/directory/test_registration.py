"""Registration: a relay is listed when its descriptor is right and it answers at its address."""

from __future__ import annotations

import pytest
import trio
from directory_bench import EPOCH, NETWORK, Bench, bench, parcel_key, relay_seed

from hushcast_directory.server.descriptors import MAX_AHEAD, MAX_VALIDITY
from hushcast_directory.server.roll import Roll
from hushcast_protocol.authorities.directory_requests import Fetch, RegisterRelay, RelayRegistered
from hushcast_protocol.base.addresses import memory_address, onion_address
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.roster import MAX_DESCRIPTOR
from hushcast_protocol.base.wire import encode
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME, decode_overlay
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import accept_channel, open_channel


async def refusal(made: Bench, descriptor: Signed) -> str:
    """Hand in a descriptor that is refused, which changes nothing; return the reason."""
    before = dict(made.roll._descriptors), len(await made.store.scan("descriptor"))
    with pytest.raises(Refusal) as refused:
        await made.client().register(descriptor)
    assert (dict(made.roll._descriptors), len(await made.store.scan("descriptor"))) == before
    return refused.value.reason


async def test_a_relay_that_answers_is_registered() -> None:
    async with bench(first_roster=2) as made:
        await made.relay(1)
        await made.register(1)
        assert relay_seed(1).public() in made.roll._descriptors
        assert made.newest is None


async def test_a_relay_that_does_not_answer_is_refused() -> None:
    async with bench() as made:
        assert "not reached" in await refusal(made, made.descriptor(1))


async def test_a_relay_at_whose_address_another_answers_is_refused() -> None:
    async with bench() as made:
        await made.relay(1, answers_as=relay_seed(2))
        assert "not reached" in await refusal(made, made.descriptor(1))


async def test_a_relay_that_names_the_address_of_another_is_refused() -> None:
    async with bench() as made:
        await made.relay(2)
        address = memory_address(relay_seed(2).public())
        assert "not reached" in await refusal(made, made.descriptor(1, address=address))


async def test_a_relay_that_lets_the_directory_wait_is_refused_in_time() -> None:
    async with bench() as made:
        listener = await made.wires.transport().listen(relay_seed(1))

        async def silent(stream: trio.abc.Stream) -> None:
            await trio.sleep_forever()

        made.nursery.start_soon(listener.serve, silent)
        assert "not reached" in await refusal(made, made.descriptor(1))


async def test_silent_relays_do_not_keep_others_from_registering() -> None:
    async with bench() as made:
        listeners = [await made.wires.transport().listen(relay_seed(number)) for number in range(10, 30)]

        async def silent(stream: trio.abc.Stream) -> None:
            await trio.sleep_forever()

        async def hand_in(number: int) -> None:
            with pytest.raises((Refusal, TransportError)):
                await made.client().register(made.descriptor(number))

        for number, listener in enumerate(listeners, 10):
            made.nursery.start_soon(listener.serve, silent)
            made.nursery.start_soon(hand_in, number)
        await trio.sleep(1)
        await made.relay(1)
        await made.register(1)
        assert relay_seed(1).public() in made.roll._descriptors


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"expires": -1}, "expired"),
        ({"expires": 0}, "expired"),
        ({"issued": MAX_AHEAD + 5, "expires": 2 * EPOCH + MAX_AHEAD}, "future"),
        ({"expires": MAX_VALIDITY * EPOCH + MAX_AHEAD + 5}, "too long"),
    ],
    ids=["expired", "expires now", "future", "too long"],
)
async def test_untimely_descriptors_are_refused(changed: dict[str, int], why: str) -> None:
    async with bench() as made:
        await made.relay(1)
        moments = {name: int(made.now) + offset for name, offset in changed.items()}
        assert why in await refusal(made, made.descriptor(1, **moments))


@pytest.mark.parametrize(
    "changed",
    [
        {"network": bytes(32)},
        {"parcel_key": bytes(32)},
        {"address": "8.8.8.8:53"},
        {"address": ""},
        {"relay": relay_seed(2).public()},
        {"relay": bytes(32)},
    ],
    ids=["network", "parcel key", "clear net", "no address", "another's name", "no name"],
)
async def test_descriptors_wrong_in_a_field_are_refused(changed: dict[str, object]) -> None:
    async with bench() as made:
        await made.relay(1)
        reason = await refusal(made, made.descriptor(1, **changed))
        assert reason.isascii()
        assert "8.8.8.8" not in reason


async def test_forged_descriptors_are_refused() -> None:
    async with bench() as made:
        await made.relay(1)
        good = made.descriptor(1)
        assert "signature" in await refusal(made, Signed(good.body, bytes(64)))
        assert "decode" in await refusal(made, Signed(good.body[:-1], good.signature))
        assert "limit" in await refusal(made, Signed(bytes(MAX_DESCRIPTOR + 1), good.signature))


async def test_an_older_descriptor_does_not_replace_a_newer_one() -> None:
    """Whoever kept one could else point a relay's name at its old parcel key and address."""
    async with bench() as made:
        await made.relay(1)
        old = made.descriptor(1, parcel_key=parcel_key(9).public())
        await trio.sleep(10)
        new = made.descriptor(1)
        await made.client().register(new)
        assert "newer" in await refusal(made, old)
        held = made.roll._descriptors[relay_seed(1).public()]
        assert held[1] == new
        await made.client().register(new)  # the same again is no harm


async def test_a_full_directory_says_so_to_whom_is_last_in_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Roll, "most", 2)
    async with bench(first_roster=9) as made:
        first, second, last = sorted(
            range(3), key=lambda number: made.roll._place(relay_seed(number).public())
        )
        for number in range(3):
            await made.relay(number)
        await made.register(first, second)
        assert "too many relays wait" in await refusal(made, made.descriptor(last))
        await made.register(first, second)
        await trio.sleep(3 * EPOCH + 1)
        await made.register(last)  # the others' descriptors have expired
        await made.register(first)
        await made.register(second)
        assert relay_seed(last).public() not in made.roll._descriptors, "who is before it in line has come"


async def test_who_is_last_in_line_by_the_time_it_was_reached_is_told_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Roll, "most", 2)
    async with bench(first_roster=9) as made:
        first, second, last = sorted(
            range(3), key=lambda number: made.roll._place(relay_seed(number).public())
        )
        listener = await made.wires.transport().listen(relay_seed(last))
        knocked, may_answer = trio.Event(), trio.Event()

        async def slow(stream: trio.abc.Stream) -> None:
            knocked.set()
            await may_answer.wait()
            link = Link.respond(NETWORK.id, relay_seed(last), made.env.randomness, MAX_OVERLAY_FRAME)
            channel, _ = await accept_channel(stream, link, decode_overlay)
            await channel.finish()

        async def others_come() -> None:
            await knocked.wait()
            for number in (first, second):
                await made.relay(number)
            await made.register(first, second)
            may_answer.set()

        made.nursery.start_soon(listener.serve, slow)
        made.nursery.start_soon(others_come)
        with pytest.raises(Refusal, match="too many relays wait"):
            await made.client().register(made.descriptor(last))
        assert made.roll.count(made.now) == 2


async def test_the_connection_names_nobody_and_has_one_question() -> None:
    async with bench(2) as made:
        client = made.client()
        link = Link.initiate(NETWORK.id, client._known.key, made.env.randomness, 10_000)
        channel, established = await open_channel(
            made.wires.transport(), client._address, "x", link, lambda data: data
        )
        assert established.view is None
        await channel.send(Fetch(None), Fetch(None), RegisterRelay(made.descriptor(5)))
        assert len(await channel.receive()) == 1
        assert not await channel.receive()


async def test_strangers_at_the_door_are_shut_out() -> None:
    async with bench(1) as made:
        transport = made.wires.transport()
        for sent in (b"GET / HTTP/1.1\r\n\r\n", bytes(1000), b""):
            stream = await transport.connect(made.client()._address, "x")
            if sent:
                await stream.send_all(sent)
            with trio.fail_after(70):
                assert await stream.receive_some() == b""
        link = Link.initiate(NETWORK.id, made.client()._known.key, made.env.randomness, 10_000)
        channel, _ = await open_channel(transport, made.client()._address, "x", link, lambda data: data)
        await channel.send(RelayRegistered())  # an answer is no question
        with trio.fail_after(70):
            assert not await channel.receive()
        await made.client().roster(None)


async def test_onion_and_loopback_addresses_are_taken_as_they_are_reached() -> None:
    async with bench() as made:
        address = onion_address(relay_seed(1).public())
        assert "not reached" in await refusal(made, made.descriptor(1, address=address))


async def test_a_newer_descriptor_that_came_while_a_relay_was_reached_stays() -> None:
    """Another directory tells of an older one, and the relay is slow to answer just then."""
    async with bench() as made:
        listener = await made.wires.transport().listen(relay_seed(1))
        knocks = 0

        async def slow_at_first(stream: trio.abc.Stream) -> None:
            nonlocal knocks
            knocks += 1
            if knocks == 1:
                await trio.sleep(8)
            link = Link.respond(NETWORK.id, relay_seed(1), made.env.randomness, MAX_OVERLAY_FRAME)
            channel, _ = await accept_channel(stream, link, decode_overlay)
            await channel.finish()

        made.nursery.start_soon(listener.serve, slow_at_first)
        older = made.descriptor(1)
        made.nursery.start_soon(made.agreeing._exchange._admit, relay_seed(2).public(), older)
        await trio.sleep(2)
        newer = made.descriptor(1)
        await made.client().register(newer)
        await trio.sleep(20)
        assert made.roll.holds(relay_seed(1).public(), newer)
        assert await made.store.scan("descriptor") == [(relay_seed(1).public(), encode(newer))]
