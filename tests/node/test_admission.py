"""A newcomer of a network with rules: it looks for work, waits, is told both by its doctor, and is seated."""

from __future__ import annotations

from functools import partial

import pytest
from several_directories import Directories
from small_network import DAY_SECONDS, EPOCH_SECONDS, small_network, until

from hushcast_node.overlay_doctor import examine_overlay
from hushcast_protocol.authorities import name_work
from hushcast_protocol.authorities.seat_admission import SeatAdmission

pytestmark = pytest.mark.slow
BITS = 9


async def test_a_newcomer_works_waits_and_is_seated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_work, "WORK_OPERATIONS", 1)
    monkeypatch.setattr(name_work, "WORK_MEMORY", 8192)
    rules = SeatAdmission(newcomers=1, growth=0, age=True, work=BITS)
    made = partial(Directories, count=1, quorum=1, admission=rules)
    async with small_network(relays=3, clients=0, directory=made) as net:
        for relay in net.relays:  # of the first head: seated, and without work for now
            assert relay.daemon.overlay.rosters.newest is not None
            assert relay.id in relay.daemon.overlay.rosters.newest.relays
        net.waits = False
        newcomer = net.add("relay-3", True)
        await newcomer.start()
        overlay = newcomer.daemon.overlay
        await until(lambda: newcomer.daemon.ready, 5 * EPOCH_SECONDS, "it has shown its work")
        status = newcomer.daemon.status()
        assert (status["name"], status["registration"]) == (newcomer.id.hex(), None)
        terms = overlay.source.terms

        def waits() -> bool:
            told = terms()
            return told is not None and newcomer.id in told.waiting

        await until(waits, 5 * EPOCH_SECONDS, "more than half have reached it")

        async def told() -> tuple[str, str]:
            findings = await examine_overlay(overlay, None, True, net.env)
            return next((one.found, one.advice) for one in findings if one.check == "seat")

        found, advice = await told()
        assert "it waits since epoch" in found
        chance = int(advice.partition("the next chance is epoch ")[2].partition(",")[0])
        assert chance % 24 == 0

        def sits() -> bool:
            newest = overlay.rosters.newest
            return newest is not None and newcomer.id in newest.relays

        await until(sits, 3 * DAY_SECONDS, "it has a seat")
        newest = overlay.rosters.newest
        assert newest is not None
        assert newest.relays[newcomer.id].since == chance
        assert (await told())[0] == f"since epoch {chance}"
