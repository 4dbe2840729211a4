"""What the doctor looks at in a daemon of a central system: each proxy, and the server behind them."""

from __future__ import annotations

from hushcast_node.central_adapter import CentralAdapter
from hushcast_protocol.base.findings import Finding, bad, good, warning
from hushcast_protocol.central.frames import Pong
from hushcast_protocol.central.network import PROXY_ROLES, ProxyRole
from hushcast_runtime.processes.examinations import examine_files

FILES_NEEDED = 1024  # open files: two links for each of 256 subscriptions, applications, publications


async def examine_central(side: CentralAdapter | None) -> list[Finding]:
    """Return the findings, asking all proxies for a sign of life; no side: the daemon is not up yet."""
    answers = await side.greet() if side is not None else []
    found = [_proxies(role, [pong for one, pong in answers if one == role]) for role in PROXY_ROLES]
    heard = [pong for _, pong in answers if pong is not None]
    wire = side.examine_wire() if side is not None else []
    return [*found, _server(heard), *wire, examine_files(FILES_NEEDED)]


def _proxies(role: ProxyRole, answers: list[Pong | None]) -> Finding:
    what, there = f"proxies for {role}", sum(pong is not None for pong in answers)
    if not there:
        return bad(
            what,
            f"none of {len(answers)} answers" if answers else "not asked yet",
            "wait for tor; then compare the configuration with the network.toml of now, or ask its operator",
        )
    if there < len(answers):
        return warning(
            what, f"{there} of {len(answers)} answer", "messages go by the others; ask the network's operator"
        )
    return good(what, f"{there} of {len(answers)} answer")


def _server(heard: list[Pong]) -> Finding:
    if not heard:
        return bad("server", "nobody knows", "see the proxies above")
    if not any(pong.is_open for pong in heard):
        return bad(
            "server",
            "no proxy reaches it",
            "what is published waits in the outbox; ask the network's operator",
        )
    return good("server", "reached by its proxies")
