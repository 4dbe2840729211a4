"""What the doctor looks at in a daemon of an overlay: the roster, and a relay's onion service."""

from __future__ import annotations

from hushcast_node.overlay_adapter import OverlayAdapter
from hushcast_node.seat_doctor import examine_seat, examine_seat_in_shard
from hushcast_overlay.cut_rosters import count, is_cut
from hushcast_protocol.base.findings import Finding, bad, good, warning
from hushcast_protocol.base.roster import Roster
from hushcast_protocol.base.versions.wires import OtherWire
from hushcast_protocol.base.wire import RelayId
from hushcast_runtime.environment import Environment
from hushcast_runtime.processes.examinations import examine_descriptor, examine_files, examine_reach
from hushcast_runtime.transports.base import Transport
from hushcast_runtime.wording import counted

FILES_NEEDED = 768  # open files beside the links: applications, boxes, drops
FILES_A_RELAY = 3  # a link in each direction, and one that replaces another


async def examine_overlay(
    side: OverlayAdapter | None,
    transport: Transport | None,
    is_relay: bool,
    env: Environment,
    is_testnet: bool = False,
) -> list[Finding]:
    """Return the findings; there is no adapter before the daemon is up."""
    newest = side.rosters.newest if side is not None else None
    relays = len(_neighbours(side, env)) if side is not None and is_relay else 0
    found = [
        _roster(side, env),
        *_directories(side),
        *_relays(side, is_testnet),
        *_wire(side),
        *_cover(side),
        examine_files(FILES_NEEDED + FILES_A_RELAY * relays),
    ]
    if not is_relay:
        return found
    listener = side.listener if side is not None else None
    if side is not None and newest is not None and (seat := _seat(side, newest, env)) is not None:
        found.append(seat)
    if side is not None and side.registration_problem is not None and side.search is None:
        found.append(_not_registered(side.registration_problem))
    return [*found, await examine_descriptor(listener), await examine_reach(listener, transport, env)]


def _not_registered(problem: str) -> Finding:
    return warning(
        "registration",
        f"not taken: {problem}",
        "it is tried again; if that lasts, ask whoever runs the directory, and mend what is said here",
    )


def _neighbours(side: OverlayAdapter, env: Environment) -> set[RelayId]:
    """Return the relays that a relay may have links with now: those of today, and of tomorrow."""
    today = side.rosters.calendar.day(env.now())
    near = (side.shards.own(day) for day in (today, today + 1))
    return {
        relay for one in near if one is not None and one.newest is not None for relay in one.newest.relays
    }


def _seat(side: OverlayAdapter, newest: Roster, env: Environment) -> Finding | None:
    if side.relay_id is None:
        return None
    if is_cut(newest):
        near = side.shards.own(side.rosters.calendar.day(env.now()))
        return examine_seat_in_shard(side.relay_id, near.newest if near is not None else None, side.search)
    if (terms := side.source.terms()) is None:
        return None
    return examine_seat(side.relay_id, newest, terms, side.search, side.rosters.calendar, env.now())


def _roster(side: OverlayAdapter | None, env: Environment) -> Finding:
    newest = side.rosters.newest if side is not None else None
    problem = side.rosters.problem if side is not None else None
    if side is None or newest is None:
        if isinstance(problem, OtherWire):
            return bad("roster", f"none: {problem.found('the directory')}", problem.way_out)
        return bad(
            "roster",
            "none",
            "wait for tor and the directory; then compare the configuration with network.toml",
        )
    relays = counted(count(newest), "relay")
    age = side.rosters.calendar.epoch(env.now()) - newest.epoch
    if age > 0 and isinstance(problem, OtherWire):
        found = f"{counted(age, 'epoch')} old, {relays}: {problem.found('the directory')}"
        return bad("roster", found, problem.way_out)
    if age > 0:
        return bad(
            "roster",
            f"{counted(age, 'epoch')} old, {relays}",
            "the directory is away or not reached: the daemon works on; ask its operator",
        )
    if side.rosters.held:
        return bad(
            "roster",
            f"lists {relays}, too few of those before: not acted on",
            "ask other operators whether so many relays are gone; else the directory lies, or is cut off",
        )
    if side.relay_id is not None and side.relay_id not in newest.relays and side.source.terms() is None:
        return warning("roster", "fresh, this relay not in it yet", "wait an epoch; the clock may be off")
    return good("roster", f"fresh, {relays}")


def _wire(side: OverlayAdapter | None) -> list[Finding]:
    """Tell what the network speaks where this program does not; else of a peer that was met."""
    if side is None:
        return []
    wire = side.rosters.wire
    found = [] if wire is None else wire.examine(side.rosters.calendar)
    return found or side.other_wires.examine()


def _cover(side: OverlayAdapter | None) -> list[Finding]:
    """Tell of a daemon under cover whether letters go, and whether it shows who reads."""
    if side is None or (cover := side.cover) is None:
        return []
    found = good("cover", f"on, {counted(cover['rounds'], 'round')}, {cover['missed']} missed")
    if cover["problem"] is not None:
        way_out = "messages wait, and nothing goes another way; where it lasts, publish with another daemon"
        found = warning("cover", f"nothing arrives: {cover['problem']}", way_out)
    return [found, *side.examine_cover()]


def _relays(side: OverlayAdapter | None, is_testnet: bool) -> list[Finding]:
    """Tell where nobody in the network answers; that somebody does, shows in all else."""
    if side is None or side.cut_off is None:
        return []
    look = "look at tor and the clock, and ask other operators"
    if is_testnet:
        look = "`hushcast testnet status` shows which of its daemons run"
    return [bad("relays", side.cut_off, f"what is published waits, and nothing arrives; {look}")]


def _directories(side: OverlayAdapter | None) -> list[Finding]:
    """Tell of several directories how many answer; one alone shows in the roster."""
    if side is None or (reached := side.source.reached()).directories == 1:
        return []
    answer = f"{reached.answered} of {reached.directories} answer"
    if reached.fork is not None:
        return [
            bad(
                "directories",
                f"two rosters for epoch {reached.fork}",
                "the daemon works on with the roster it has; ask the operators, who have to begin anew",
            )
        ]
    if 2 * reached.answered <= reached.directories:
        return [warning("directories", answer, "one that answers is enough, but they may be cut off")]
    return [good("directories", answer)]
