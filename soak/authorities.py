"""Five directories of which two lie, over a private Tor network, while ten daemons publish for a day."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import trio

from hushcast_protocol.authorities.beacon import DRAWN
from hushcast_runtime.logs import configure_logs
from hushcast_testnet import processes
from hushcast_testnet.signals import until_signalled
from hushcast_testnet.tor import private_tor
from hushcast_testnet.tor.distance import NEAR, Distance
from soak.directories.figures import play
from soak.directories.place import over_tor
from soak.directories.scene import Plan

TOR_WITHIN = 240.0  # seconds


def watch_authorities(
    directory: Path, plan: Plan, progress: Callable[[str], None], distance: Distance = NEAR
) -> dict[str, Any]:
    """Play a scene over Tor, its tors so far apart; its figures, and whether all held."""
    configure_logs("error", as_json=False)
    return trio.run(until_signalled, _watch, directory, plan, progress, distance)


async def _watch(
    directory: Path, plan: Plan, progress: Callable[[str], None], distance: Distance
) -> dict[str, Any]:
    directory.mkdir(parents=True)
    progress("starting a private Tor network")
    with trio.fail_after(TOR_WITHIN):
        tor = await private_tor.start(directory / "tor", distance=distance)
    try:
        with trio.fail_after(TOR_WITHIN):
            await private_tor.wait_ready(tor)
        progress(f"playing {plan.epochs} epochs of {plan.epoch} s")
        figures = await play(plan, over_tor(tor, directory, plan.begin))
    finally:
        with trio.CancelScope(shield=True):
            await processes.stop(tor.processes)
    return {"ok": figures.held and figures.beacon == DRAWN, **asdict(figures)}
