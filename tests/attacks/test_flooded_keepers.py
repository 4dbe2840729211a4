"""Somebody who does not like what is kept: floods of keepers, what no relay hands in, questions without end.

A relay has seen a trunk pass, and hands in more under it than a keeper has room for; or it makes up trunks
that lead to the keeper. A stranger asks again and again for all that there is.
"""

from __future__ import annotations

import os
from itertools import islice
from typing import Any

import pytest
import trio
from kept_network import all_kept, ask, has, ids_at, keepers_of, kept_network, kept_of
from owner_end import BODY, TRUNK, drop, message
from small_network import EPOCH_SECONDS, Node, SmallNetwork, until
from steps import Steps

from hushcast_overlay.relay.keepers import hand_ins, kept_messages
from hushcast_overlay.relay.strangers import MAX_SHOWING
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.content import kept_shares
from hushcast_protocol.content.kept_shares import KEPT_BESIDE, MAX_KEPT_IDS
from hushcast_protocol.content.messages import MAX_BODY, Message
from hushcast_protocol.overlay.frames import Ack, Drop, Forward, Receipt
from hushcast_protocol.overlay.hops import keeper_hop
from hushcast_protocol.overlay.keeper_frames import MAX_SHOWN, AskKept, AskKeptMessages, HandIn, ShownKept
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import Channel

ROOM = 200 * (BODY + KEPT_BESIDE)  # bytes of all that one keeps here; of a trunk half of that


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_shares, "MAX_KEPT", ROOM)
    monkeypatch.setattr(kept_shares, "MAX_KEPT_OF_TRUNK", ROOM // 2)


def apart(net: SmallNetwork, one: Message) -> tuple[Node, Node, list[Node]]:
    """A keeper of a message, a relay that keeps it not and is hostile, and the others of these."""
    keepers = keepers_of(net, one)
    others = [relay for relay in net.relays if relay not in keepers]
    return keepers[0], others[0], others[1:]


async def link_of(net: SmallNetwork, hostile: Node, keeper: Node) -> Channel[Any]:
    """A link under a relay's name, beside those that it has."""
    assert hostile.identity is not None
    return await net.knock(keeper, hostile.identity.seed)


async def handed_in(channel: Channel[Any], count: int) -> None:
    """Wait until so many hand-ins are acknowledged."""
    with trio.fail_after(3600):
        number = 0
        while number < count:
            for frame in await channel.receive():
                if isinstance(frame, Ack):
                    number = frame.number


@pytest.mark.slow
@pytest.mark.usefixtures("little_room")
async def test_a_relay_that_floods_a_trunk_loses_its_own_and_nothing_else() -> None:
    """Thirty-two times what there is room for, as a gibibyte is to 32 MiB, in bodies of one size."""
    async with kept_network(clients=0) as net:
        day = net.calendar.day(net.now)
        keeper, hostile, others = apart(net, message(day))
        honest = [message(day) for _ in range(20)]
        for number, one in enumerate(honest[:10]):
            await drop(net, others[number % len(others)], one)
        await all_kept(net, *honest[:10])
        link, flood = await link_of(net, hostile, keeper), 32 * ROOM // 2 // BODY
        steps = Steps()
        trio.lowlevel.add_instrument(steps)
        for _ in range(flood):
            await link.send(HandIn(message(day)))
        await handed_in(link, flood)
        trio.lowlevel.remove_instrument(steps)
        steps.check()
        for number, one in enumerate(honest[10:]):
            await drop(net, others[number % len(others)], one)
        await all_kept(net, *honest)
        shown = await ask(net, keeper, AskKept(day, TRUNK, None))
        assert {one.id for one in honest} <= set(shown.ids)
        assert shown.gave_way == keeper.count("messages_kept_gave_way") > flood * 0.9
        await keeper.restart()
        assert await ask(net, keeper, AskKept(day, TRUNK, None)) == shown
        assert all(has(keeper, one) for one in honest)


@pytest.mark.slow
@pytest.mark.usefixtures("little_room")
async def test_a_relay_that_hands_in_what_others_did_takes_none_of_it_with_its_flood() -> None:
    """Anybody may ask for what is kept: it asks, hands all of it in once more, and then floods the trunk."""
    async with kept_network(clients=0) as net:
        day = net.calendar.day(net.now)
        keeper, hostile, others = apart(net, message(day))
        honest = [message(day) for _ in range(20)]
        trunks = (os.urandom(16) for _ in range(1000))
        before = (one for one in (message(day, each) for each in trunks) if keeper in keepers_of(net, one))
        for number, one in enumerate([*islice(before, 60), *honest]):
            await drop(net, others[number % len(others)], one)
        await all_kept(net, *honest)
        link, flood = await link_of(net, hostile, keeper), 4 * ROOM // 2 // BODY
        await link.send(*map(HandIn, honest))
        for _ in range(flood):
            await link.send(HandIn(message(day)))
        await handed_in(link, len(honest) + flood)
        assert keeper.count("messages_kept_gave_way") > flood / 2
        assert [has(keeper, one) for one in honest] == [True] * len(honest)
        await keeper.restart()
        await (again := await link_of(net, hostile, keeper)).send(*(HandIn(message(day)) for _ in range(50)))
        await handed_in(again, 50)
        assert [has(keeper, one) for one in honest] == [True] * len(honest)


@pytest.mark.slow
@pytest.mark.usefixtures("little_room")
async def test_made_up_trunks_lead_to_a_keeper_and_take_nothing_from_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kept_messages, "MAX_GAVE_WAY", 20)
    async with kept_network(clients=0) as net:
        day = net.calendar.day(net.now)
        keeper, hostile, others = apart(net, message(day))
        honest = [message(day) for _ in range(20)]
        for number, one in enumerate(honest):
            await drop(net, others[number % len(others)], one)
        await all_kept(net, *honest)
        link, tried, led = await link_of(net, hostile, keeper), 1500, 0
        for _ in range(tried):
            one = message(day, os.urandom(16))
            led += keeper in keepers_of(net, one)
            await link.send(HandIn(one))
        await handed_in(link, tried)
        assert keeper.count("hand_ins_declined") == tried - led
        assert led > tried / 4, "three of nine relays keep each trunk"
        assert all(has(keeper, one) for one in honest)
        gone = keeper.count("messages_kept_gave_way")
        assert gone >= led - ROOM // 2 // BODY
        kept = kept_of(keeper)
        assert sum(kept._gave_way.values()) == gone
        assert len(kept._gave_way) <= 21, "trunks that are made up share one count"
        others = kept._gave_way[day.to_bytes(8, "big") + bytes(16)]
        shown = await ask(net, keeper, AskKept(day, TRUNK, None))
        assert shown.gave_way == others, "so many at most"


FORGED = {
    "another id": lambda one: replace_in(one, id=bytes(32)),
    "attributes": lambda one: replace_in(one, tokens=(one.tokens[0], bytes(16))),
    "a trail": lambda one: replace_in(one, trail=b"\x01" + one.trail[1:]),
    "another size": lambda one: message(one.day, size=1000),
}


def replace_in(one: Message, **fields: Any) -> Message:
    values = {name: getattr(one, name) for name in Message.__struct_fields__}
    return Message(**{**values, **fields})


@pytest.mark.parametrize("what", FORGED)
async def test_what_no_honest_relay_hands_in_ends_the_link(what: str) -> None:
    async with kept_network(clients=0, relays=3) as net:
        one = message(net.calendar.day(net.now))
        (keeper,) = keepers_of(net, one)
        hostile = next(relay for relay in net.relays if relay is not keeper)
        link = await link_of(net, hostile, keeper)
        await link.send(HandIn(FORGED[what](one)))
        with trio.fail_after(10):
            await ended(link)
        assert keeper.count("refused_form") == 1
        assert ids_at(keeper, one.day, TRUNK) == ()


async def ended(link: Channel[Any]) -> None:
    """Wait until the other end has closed a link."""
    try:
        while await link.receive():
            pass
    except (TransportError, PeerError):
        pass


async def test_other_days_and_other_keepers_trunks_are_not_kept_and_the_link_goes_on() -> None:
    async with kept_network(clients=0) as net:
        day = net.calendar.day(net.now)
        keeper, hostile, _ = apart(net, message(day))
        trunks = (bytes([number]) * 16 for number in range(100))
        foreign = next(one for one in (message(day, t) for t in trunks) if keeper not in keepers_of(net, one))
        sent = [message(day), message(day - 1), message(day + 1), message(day + 9), foreign, message(day)]
        link = await link_of(net, hostile, keeper)
        await link.send(*map(HandIn, sent), Forward(message(day, bytes(16))))
        with trio.fail_after(10):
            (ack,) = await link.receive()
        assert ack == Ack(7, (2, 3, 4, 5, 7)), "places on the link; what is forwarded leads nowhere"
        assert set(ids_at(keeper, day, TRUNK)) == {sent[0].id, sent[-1].id}
        assert keeper.count("hand_ins_declined") == 4


@pytest.mark.parametrize("name", ["stranger", "owner"])
async def test_nobody_but_a_relay_hands_in(name: str) -> None:
    async with kept_network(clients=0, relays=3) as net:
        one = message(net.calendar.day(net.now))
        (keeper,) = keepers_of(net, one)
        outsider = net.add("outsider", True)
        assert outsider.identity is not None
        link = await net.knock(keeper, outsider.identity.seed if name == "owner" else None)
        await link.send(HandIn(one))
        with trio.fail_after(10):
            await ended(link)
        assert ids_at(keeper, one.day, TRUNK) == ()


async def test_a_relay_asks_as_everybody_does_and_not_over_its_links() -> None:
    async with kept_network(clients=0, relays=3) as net:
        one = message(net.calendar.day(net.now))
        (keeper,) = keepers_of(net, one)
        hostile = next(relay for relay in net.relays if relay is not keeper)
        link = await link_of(net, hostile, keeper)
        await link.send(AskKept(one.day, TRUNK, None))
        with trio.fail_after(10):
            await ended(link)
        assert keeper.count("kept_asked_for") == 0


@pytest.mark.slow
async def test_questions_without_end_take_short_steps_and_no_place_of_those_who_drop() -> None:
    """A full trunk: its ids are an answer of 350 kB. Nobody takes the answers."""
    async with kept_network(clients=0, relays=3) as net:
        day = net.calendar.day(net.now)
        (keeper,) = keepers_of(net, message(day))
        shares = kept_of(keeper)._shares
        name = day.to_bytes(8, "big") + TRUNK
        for number in range(MAX_KEPT_IDS):
            shares.add(name, os.urandom(32), kept_shares.KeptEntry(BODY, number.to_bytes(32, "big"), 1))
        held = len(shares.ids(name))
        assert held > 9000
        large = message(day, size=MAX_BODY)
        await drop(net, keeper, large)
        asking: list[Channel[Any]] = []
        steps = Steps()
        trio.lowlevel.add_instrument(steps)
        for number in range(4 * MAX_SHOWING):
            link = await net.knock(keeper)
            bodies = AskKeptMessages(day, TRUNK, (large.id,) * MAX_SHOWN)
            await link.send(AskKept(day, TRUNK, None) if number % 2 else bodies)
            asking.append(link)
        await until(lambda: keeper.count("kept_asked_for") == 4 * MAX_SHOWING, 60)
        await drop(net, keeper, message(day))
        trio.lowlevel.remove_instrument(steps)
        steps.check()
        shown = await ask(net, keeper, AskKept(day, TRUNK, None))
        assert isinstance(shown, ShownKept)
        assert len(shown.ids) == held + 1


@pytest.mark.slow
async def test_a_keeper_that_is_away_does_not_fill_the_spool_of_an_origin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hand_ins, "MAX_FOR_KEEPERS", 4 * MAX_BODY)
    async with kept_network(clients=0) as net:
        day = net.calendar.day(net.now)
        keeper, origin, _ = apart(net, message(day))
        for away in keepers_of(net, message(day)):
            await away.stop()
        for _ in range(10):
            channel = await net.knock(origin)
            await channel.send(Drop(message(day, size=MAX_BODY), None))
            assert await channel.one(60) == Receipt("accepted")
            await channel.aclose()
        await trio.sleep(6 * EPOCH_SECONDS)  # nobody has subscribed for so long
        spool = origin.daemon.overlay.relay.peers._spool  # type: ignore[union-attr]
        assert MAX_BODY <= spool.size < 2 * MAX_BODY
        assert origin.count("messages_not_handed_in") == 9
        await keeper.start()
        await until(lambda: len(ids_at(keeper, day, TRUNK)) == 1, 120)


@pytest.mark.slow
async def test_days_of_many_made_up_trunks_are_forgotten_in_short_steps() -> None:
    """As many trunks of a day gone by as there is room for, each with one of the smallest messages."""
    async with kept_network(clients=0, relays=3) as net:
        kept, day = kept_of(net.relays[0]), net.calendar.day(net.now) - 20
        most = kept_shares.MAX_KEPT // 2 // (BODY + KEPT_BESIDE)
        for number in range(most):
            name = kept_shares.trunk_day(day, number.to_bytes(16, "big"))
            kept._shares.add(name, os.urandom(32), kept_shares.KeptEntry(BODY, bytes(32), 1))
        assert len(kept._shares) == most
        steps = Steps()
        trio.lowlevel.add_instrument(steps)
        await kept.lapse()
        trio.lowlevel.remove_instrument(steps)
        steps.check()
        assert len(kept._shares) == 0


@pytest.mark.slow
async def test_a_keeper_that_takes_nothing_leaves_the_others_room_at_an_origin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A stranger drops there what that one is to keep, until it has all the room that it can have."""
    monkeypatch.setattr(hand_ins, "MAX_FOR_KEEPERS", 16 * MAX_BODY)
    async with kept_network(clients=0) as net:
        day = net.calendar.day(net.now)
        keeper, origin, _ = apart(net, message(day))
        await keeper.stop()
        for _ in range(24):
            await drop(net, origin, message(day, size=MAX_BODY))
        others = [message(day, os.urandom(16)) for _ in range(6)]
        await drop(net, origin, *others)
        for one in others:
            there = [each for each in keepers_of(net, one, origin) if each is not keeper]
            await until(lambda one=one, there=there: all(has(each, one) for each in there), 60)  # type: ignore[misc]
        assert origin.count("messages_not_handed_in") == 0
        assert origin.daemon.overlay.relay is not None
        shares = origin.daemon.overlay.relay.peers._spool.shares
        assert MAX_BODY < shares[keeper_hop(keeper.id)] <= 4 * MAX_BODY
