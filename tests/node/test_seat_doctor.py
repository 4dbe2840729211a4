"""What a relay without a seat is told: why, and when its next chance is."""

from __future__ import annotations

import pytest

from hushcast_directory.client.roster_source import SeatTerms
from hushcast_node.seat_doctor import examine_seat, examine_seat_in_shard
from hushcast_overlay.relay.name_work import NameWorkSearch
from hushcast_protocol.authorities.head_inside import Beacon
from hushcast_protocol.authorities.seat_admission import SeatAdmission
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.findings import Finding
from hushcast_protocol.base.roster import Network, Relay, Roster

CALENDAR = Calendar(3600)
DAY = 24 * 100
NAME, OTHER = b"n" * 32, b"o" * 32


def examine(
    rules: SeatAdmission,
    waiting: dict[bytes, int],
    seats: dict[bytes, int] | None = None,
    search: NameWorkSearch | None = None,
    epoch: int = DAY + 3,
) -> Finding:
    relays = {
        name: Relay(name, memory_address(name), bytes(32), since)
        for name, since in (seats or {OTHER: DAY - 9}).items()
    }
    roster = Roster(Network("seats", "hardened", 3600), epoch, bytes(32), bytes(32), relays)
    terms = SeatTerms(epoch, rules, Beacon(100, bytes(32)), waiting)
    return examine_seat(NAME, roster, terms, search, CALENDAR, CALENDAR.epoch_start(epoch) + 600)


async def test_one_with_a_seat() -> None:
    finding = examine(SeatAdmission(1), {}, {NAME: DAY - 3})
    assert (finding.verdict, finding.found) == ("good", f"since epoch {DAY - 3}")


async def test_one_that_looks_for_work() -> None:
    finding = examine(SeatAdmission(work=20), {}, search=NameWorkSearch(20, 1234, 0.2))
    assert finding.verdict == "warning"
    assert "work of 20 bits" in finding.found
    assert "1,234 tries so far, some 2 days expected" in finding.found


async def test_one_that_nobody_has_reached() -> None:
    assert "have to reach this relay, and have not yet" in examine(SeatAdmission(1), {OTHER: DAY}).found


@pytest.mark.parametrize(
    ("rules", "since", "seats", "chance", "hours"),
    [
        (SeatAdmission(1), DAY, {OTHER: DAY - 9}, DAY + 4, "some 50 minutes"),
        (SeatAdmission(1), DAY, {OTHER: DAY + 1}, DAY + 24, "some 21 hours"),
        (SeatAdmission(1, age=True), DAY + 2, {OTHER: DAY - 9}, DAY + 24, "some 21 hours"),
        (SeatAdmission(1, age=True), DAY - 30, {OTHER: DAY - 9}, DAY + 24, "some 21 hours"),
    ],
)
async def test_one_that_waits_is_told_its_next_chance(
    rules: SeatAdmission, since: int, seats: dict[bytes, int], chance: int, hours: str
) -> None:
    finding = examine(rules, {NAME: since, OTHER: since}, seats)
    assert f"waits since epoch {since}, with 1 other relay" in finding.found
    assert "1 newcomer a day" in finding.found
    assert f"epoch {chance}, in {hours}" in finding.advice
    late = examine(SeatAdmission(1, age=True), {NAME: DAY + 6}, {OTHER: DAY - 9}, epoch=DAY + 7)
    assert f"epoch {DAY + 48}" in late.advice


async def test_the_rules_are_told_in_words() -> None:
    told = examine(SeatAdmission(20, 20, age=True), {NAME: DAY}).found
    assert "20 newcomers, or 2 % of the network, a day are drawn among those known since epoch 5" in told


async def test_one_in_its_shard() -> None:
    relays = {
        name: Relay(name, memory_address(name), bytes(32), since)
        for name, since in {NAME: DAY - 3, OTHER: DAY - 9, b"p" * 32: DAY}.items()
    }
    shard = Roster(Network("seats", "hardened", 3600), DAY + 3, bytes(32), bytes(32), relays)
    finding = examine_seat_in_shard(NAME, shard, None)
    assert finding.verdict == "good"
    assert finding.found == f"since epoch {DAY - 3}, in a shard with 2 other relays"
    absent = examine_seat_in_shard(b"q" * 32, shard, None)
    assert absent.verdict == "warning"
    assert "none in today's shard" in absent.found
    looking = examine_seat_in_shard(b"q" * 32, shard, NameWorkSearch(20, 1234, 0.2))
    assert "work of 20 bits" in looking.found


async def test_one_whose_shard_is_not_here_yet() -> None:
    finding = examine_seat_in_shard(NAME, None, None)
    assert finding.verdict == "warning"
    assert "not fetched yet" in finding.found
