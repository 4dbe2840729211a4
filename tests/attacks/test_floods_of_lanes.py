"""Somebody shows more bills, gives more blocks or asks for more lanes than there is room for, or another's.

Owners, porters, hosts and seconds may each be hostile.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from lane_owner import LaneOwner
from lettered_network import desks_of, lettered_network
from owner_end import BODY, message
from small_network import small_network
from steps import one_step
from test_floods_of_letters import is_ended

from hushcast_overlay.relay.boxes import box_lanes
from hushcast_overlay.relay.cover import lane_desk, parcel_errands
from hushcast_overlay.relay.cover import porter as porters
from hushcast_protocol.base.cover_terms import QUARTER
from hushcast_protocol.base.crypto.proof_of_work import FIRST_DIFFICULTY
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, Refusal
from hushcast_protocol.cover.cover_frames import CoverBill, CoverBills, CoverGiven, CoverHanded, LanesBill
from hushcast_protocol.cover.lane_box import LaneBox
from hushcast_protocol.cover.lane_papers import LANE_PAPER
from hushcast_protocol.cover.lane_seals import HOST_BLOCK, second_block
from hushcast_protocol.cover.receipt_list import BLOCK
from hushcast_protocol.overlay.letter_errands import GiveErrand
from hushcast_protocol.overlay.parcels import price
from hushcast_runtime.storage.spool import SpooledMessage

pytestmark = pytest.mark.slow


def others(owner: LaneOwner) -> LaneOwner:
    """Another owner with the same hosts."""
    other = LaneOwner(owner.net)
    other.hosts = owner.hosts
    return other


async def test_a_host_does_for_a_box_what_its_owner_signed_and_has_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(box_lanes, "MAX_BOX_LANES", 4)
    async with lettered_network() as net:
        owner = LaneOwner(net)
        desk, asked = owner.host_desk(0), owner.asked(0)
        turned = msgspec.structs.replace(asked, errand=others(owner).asked(0).errand)
        for bad in (turned, owner.asked(1), msgspec.structs.replace(asked, signature=bytes(64))):
            with pytest.raises(AuthenticationError):
                await desk.hold(bad, True)
        with pytest.raises(DecodeError):  # a box without a lane
            await desk.hold(owner.asked(0, (owner.porter,), with_errand=False), True)
        for until in (owner.now - 1, owner.now + 10**6):
            late = others(owner)
            late.errands[0] = late.until(0, until)
            with pytest.raises(Refusal, match="day"):
                await desk.hold(late.asked(0), True)
        elsewhere = others(owner)
        elsewhere.errands[0] = replace(elsewhere.errands[0], second=owner.chain.third)
        with pytest.raises(Refusal, match="list"):
            await desk.hold(elsewhere.asked(0), True)
        with pytest.raises(Refusal, match="quota"):  # a lane costs, whatever a relay asks for else
            await desk.hold(asked, False)
        assert price(asked, 0) == FIRST_DIFFICULTY + QUARTER.bit_length()
        assert len(desk) == 0
        await desk.hold(asked, True)
        twin = others(owner)
        twin.errands[0] = owner.errands[0]
        with pytest.raises(Refusal, match="lane"):  # a second would be given two blocks a round
            await desk.hold(twin.asked(0), True)
        for _ in range(3):
            await desk.hold(others(owner).asked(0), True)
        assert owner.hosts[0].daemon.overlay.relay is not None
        assert owner.hosts[0].daemon.overlay.relay.cover.fullness() == 1.0, "it asks for more from half on"
        with pytest.raises(Refusal, match="quota"):
            await desk.hold(others(owner).asked(0), True)
        owner.errands[0] = owner.until(0, owner.errands[0].until + 1)
        await desk.hold(owner.asked(0), True)  # one that follows takes no room of its own
        with pytest.raises(Refusal, match="day"):  # one that was overtaken
            await desk.hold(asked, True)
        assert len(desk) == 4


async def test_a_message_for_all_boxes_takes_no_long_step_and_what_gave_way_is_let_go_of() -> None:
    async with lettered_network() as net:
        owner = LaneOwner(net)
        desk, day = owner.host_desk(0), net.calendar.day(net.now)
        for number in range(box_lanes.MAX_BOX_LANES):
            desk._lanes[number.to_bytes(32, "big")] = desk._made(owner.errands[0], LaneBox(owner.rules))
        large = message(day, size=255 * 1024 + BODY)
        with one_step():
            for number, box in enumerate(desk._lanes):
                desk._came(box, SpooledMessage(b"place %d" % number, large, len(large.body)))
        assert {len(lane.box) for lane in desk._lanes.values()} == {1}
        box, lane = next(iter(desk._lanes.items()))
        small = message(day)
        with one_step():
            for number in range(10_000):  # of which none waits in the spool
                desk._came(box, SpooledMessage(b"%d" % number, small, len(small.body)))
        assert len(lane.box) <= lane.most < 256


async def test_a_second_takes_bills_and_blocks_of_a_bound_and_of_whom_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with lettered_network() as net:
        owner = LaneOwner(net)
        second, host, porter = net.relay(owner.seconds[0]), owner.hosts[0], owner.chain.porter
        desk, errand = desks_of(second).lanes, owner.errands[0]
        await net.sleep_until(owner.rules.listed_at(owner.now) + 1)  # a round has just been handed down
        now = owner.now

        def given(round_: int) -> CoverGiven:
            return CoverGiven(round_, errand.lane, owner.draw(HOST_BLOCK))

        desk.take(given(now), host.id)
        assert second.count("blocks_refused") == 1, "nobody has shown the bill yet"
        desk.show(CoverBill(owner.draw(LANE_PAPER), None), porter)
        assert second.count("blocks_refused") == 2, "one that does not open"
        desk.show(CoverBill(owner.shown[0].sealed, None), porter)
        desk.show(CoverBill(owner.shown[0].sealed, None), host.id)
        assert second.count("refused_quota") == 1, "another relay shows it"
        for round_, who in ((now - 1, host.id), (now + 1, host.id), (now, owner.hosts[1].id)):
            desk.take(given(round_), who)
        assert second.count("blocks_refused") == 5
        first = given(now)
        for frame in (first, given(now)):  # an owner has two boxes given by one lane
            desk.take(frame, host.id)
        assert second.count("blocks_refused") == 6
        ((handed,),) = (await desk.hand_down(now)).values()
        assert isinstance(handed, CoverHanded)
        assert handed.block == second_block(owner.keys[0].second, now, first.block)
        monkeypatch.setattr(lane_desk, "_SHOWN_A_ROUND", 0)
        monkeypatch.setattr(lane_desk, "_GIVEN_A_ROUND", 0)
        with pytest.raises(DecodeError):
            desk.show(CoverBill(owner.draw(LANE_PAPER), None), porter)
        with pytest.raises(DecodeError):
            desk.take(given(now + 1), host.id)
        monkeypatch.setattr(lane_desk, "_SHOWN_A_ROUND", 3)
        monkeypatch.setattr(type(desk._bills._stamps), "spend", lambda *_: False)
        desk.show(CoverBill(owner.shown[1].sealed, None), owner.chain.third)
        assert second.count("refused_stamp") == 1


async def test_a_porter_takes_three_bills_a_day_and_each_block_of_its_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with lettered_network() as net:
        owner = LaneOwner(net)
        assert owner.bills is not None
        channel = await owner.knock()
        await channel.send(owner.bills, owner.bills)
        assert await is_ended(channel)
        porter, bill = desks_of(owner.porter).porter, owner.shown[0].name
        (place,) = porter.places
        assert place.lanes is not None
        block, now = owner.draw(BLOCK), owner.now
        for frame in (CoverHanded(now, bill, block), CoverHanded(now - 1, owner.draw(16), block)):
            porter.take_block(frame, owner.seconds[0])
        assert owner.porter.count("blocks_refused") == 2, "of another round, and of no lane"
        # A daemon may tell one bill for two seconds, or another's: no second loses its link by that.
        porter.take_block(CoverHanded(now - 1, bill, owner.draw(BLOCK)), owner.seconds[1])
        porter.take_block(CoverHanded(now - 1, bill, block), owner.seconds[0])
        porter.take_block(CoverHanded(now - 1, bill, owner.draw(BLOCK)), owner.seconds[0])
        assert owner.porter.count("blocks_refused") == 4
        assert place.lanes.end_round()[0] == block
        monkeypatch.setattr(porters, "_HANDED_A_ROUND", 0)
        with pytest.raises(DecodeError):
            porter.take_block(CoverHanded(now - 1, bill, block), owner.seconds[0])
        other = others(owner)
        assert other.bills is not None
        place.billed_in = None
        porter.places.take_bills(place, other.bills)
        assert place.lanes.names == tuple(one.name for one in owner.shown), "others come once a day"
        place.billed_in, place.changed_in = None, now - owner.rules.held_rounds
        porter.places.take_bills(place, other.bills)
        assert place.lanes.names == tuple(one.name for one in other.shown)
        place.billed_in, place.changed_in = None, now - owner.rules.held_rounds
        porter.places.take_bills(place, owner.bills)
        one = owner.bills.bills[0]
        alike = others(owner)
        alike.bills = CoverBills((one, one, LanesBill(owner.seconds[1], one.bill)))
        alike.chain, alike.relays, alike.place = owner.chain, owner.relays, owner.place
        await net.sleep_until(owner.rules.end_of(owner.now) + 1)
        channel = await alike.knock()
        await channel.send(alike.bills)
        assert await is_ended(channel)
        assert place.lanes.bills[1] == (owner.seconds[1], owner.shown[1].sealed)


async def test_parcels_in_letters_wait_at_a_third_in_turn_and_for_an_hour() -> None:
    async with lettered_network() as net:
        owner = LaneOwner(net)
        listed: list[Any] = []
        errands = parcel_errands.ParcelErrands(
            desks_of(owner.third).third._means, lambda *one: listed.append(one)
        )
        for number in range(20):
            errands.add(b"m" * 32, bytes([number] * 8), GiveErrand(owner.hosts[0].id, b"%d" % number))
        errands.add(owner.chain.second, b"n" * 8, GiveErrand(bytes(32), b"to nobody"))
        for host in owner.hosts[1:]:
            errands.add(b"m" * 32, b"last", GiveErrand(host.id, b"behind twenty for another"))
        popped = [errands._waiting.pop() for _ in range(4)]
        assert [second[:1] for second, _ in popped[:2]] == [b"m", owner.chain.second[:1]]
        named = {errand.relay for second, (_, errand) in popped if second == b"m" * 32}
        assert named == {host.id for host in owner.hosts}, "each relay has its turn"
        errands.end_hour()
        assert not errands._waiting
        await errands._give(GiveErrand(owner.hosts[0].id, b"no parcel"))
        assert owner.hosts[0].count("refused_form") == 1
        assert not listed


def test_a_parcel_that_has_to_wait_for_its_relay_still_has_its_turn() -> None:
    means: Any = None  # nothing is handed over here
    errands = parcel_errands.ParcelErrands(means, lambda *_: None)
    for relay, number in ((b"a" * 32, b"1"), (b"a" * 32, b"2"), (b"b" * 32, b"3")):
        errands.add(b"m" * 32, number, GiveErrand(relay, b""))
    first, second = (errands._waiting.pop() for _ in range(2))
    errands._waiting.add(*second)  # its relay has too many under way
    left = []
    while errands._waiting:
        left.append(errands._waiting.pop())
    assert {item[0] for _, item in (first, *left)} == {b"1", b"2", b"3"}


async def test_a_relay_without_cover_takes_no_word_of_lanes() -> None:
    async with small_network(relays=3, clients=0) as net:
        mole, other, _ = net.relays
        assert mole.identity is not None
        await mole.stop()
        for frame in (
            CoverBill(bytes(LANE_PAPER), None),
            CoverGiven(1, bytes(16), bytes(HOST_BLOCK)),
            CoverHanded(1, bytes(16), bytes(BLOCK)),
        ):
            channel: Any = await net.knock(other, us=mole.identity.seed)
            await channel.send(frame)
            assert await is_ended(channel)
        assert other.count("refused_form") == 3
