"""What is remembered between commands: which testnets came up, so that paths need not be typed each time."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hushcast_cli.output import note
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.user_folders import state_home

if TYPE_CHECKING:
    from hushcast_testnet.inventory import GatewayMember, Member, Testnet

TESTNET_VARIABLE = "HUSHCAST_TESTNET"
"""The environment variable that names a testnet's directory."""
_KEPT = 16  # testnets that are remembered; more at a time fit on no machine
_NAMED = 6  # nodes that an error names, of hundreds


def remember_testnet(directory: Path) -> None:
    """Remember a testnet that has come up; where that cannot be written, do without."""
    newest = directory.absolute()
    with suppress(OSError, UsageError):
        file = _file()
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        before = [one for one in remembered_testnets() if one != newest and one.is_dir()]
        file.write_text("".join(f"{one}\n" for one in [*before, newest][-_KEPT:]))


def remembered_testnets() -> list[Path]:
    """Return the directories of testnets that came up, the last at the end; they may be gone."""
    try:
        return [Path(line) for line in _file().read_text().splitlines() if line]
    except (OSError, ValueError, UsageError):
        return []


def last_testnet() -> Path | None:
    """Return the directory of the testnet that came up last, if it is still there, and tell which it is."""
    last = remembered_testnets()[-1:]
    if not last or not last[0].is_dir():
        return None
    note(f"the testnet in {last[0]}")
    return last[0]


def node_socket(name: str) -> Path:
    """Return the control socket of the node of this name in the testnet that runs; raise `UsageError`."""
    if (socket := control_socket(testnet_member(name))) is None:
        raise UsageError(
            f"{name} is no node and has no control socket: `hushcast doctor --node {name}` looks"
        )
    return socket


def control_socket(member: Member | GatewayMember) -> Path | None:
    """Return where a member of a testnet listens for applications; `None` for one that serves the nodes."""
    from hushcast_testnet.inventory import Member

    return Path(member.socket) if isinstance(member, Member) and member.socket is not None else None


def testnet_member(name: str) -> Member | GatewayMember:
    """Return what has this name in the testnet that HUSHCAST_TESTNET names, or else in the one that runs.

    Raises `UsageError` where there is none, where several have the name, and for a name that nothing has.
    """
    running = _running()
    found = {
        directory: member
        for directory, testnet in running.items()
        for member in _members(testnet)
        if member.name == name
    }
    if len(found) > 1:
        where = " and ".join(map(str, found))
        raise UsageError(f"there is a {name} in {where}: set {TESTNET_VARIABLE} to the one that you mean")
    if found:
        return next(iter(found.values()))
    from hushcast_protocol.base.suggestions import did_you_mean

    directory, testnet = list(running.items())[-1]
    names = [member.name for member in _members(testnet)]
    nodes = [member.name for member in testnet.nodes]
    told = ", ".join(nodes[:_NAMED]) + (", …" if len(nodes) > _NAMED else "")
    meant = did_you_mean(name, names) or f"; its nodes are {told}"
    raise UsageError(f"the testnet in {directory} has no {name!r}{meant}")


def _members(testnet: Testnet) -> list[Member | GatewayMember]:
    return [*testnet.members, *testnet.gateways]


def node_names() -> list[str]:
    """Return the names of the nodes of testnets that run; raise `UsageError` where none does."""
    return [member.name for testnet in _running().values() for member in testnet.nodes]


def _running() -> dict[Path, Testnet]:
    """Return the testnets that may be meant, the last at the end; raise `UsageError` where none runs."""
    from hushcast_testnet.inventory import is_down, load

    if named := os.environ.get(TESTNET_VARIABLE):
        return {Path(named): load(Path(named))}
    known = remembered_testnets()
    if not known:
        raise UsageError("--node: no testnet was started: `hushcast testnet up` does; or name a --socket")
    found = {}
    for directory in known:
        with suppress(UsageError):
            found[directory] = load(directory)
    if not found:
        raise UsageError(
            f"--node: the testnet in {known[-1]} is there no more: `hushcast testnet up` starts another"
        )
    running = {directory: testnet for directory, testnet in found.items() if not is_down(testnet)}
    if not running:
        raise UsageError(
            f"--node: the testnet in {list(found)[-1]} does not run: `hushcast testnet up` starts another"
        )
    return running


def _file() -> Path:
    return state_home() / "hushcast" / "testnet"
