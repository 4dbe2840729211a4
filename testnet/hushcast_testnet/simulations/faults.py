"""Faults of a simulation: relays killed at once, relays that come and go, relays that lose messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import trio

from hushcast_runtime.environment import Environment
from hushcast_testnet.simulations.colluders import Colluders
from hushcast_testnet.simulations.lives import Life
from hushcast_testnet.simulations.overlay_members import OverlayMember

SHORTEST_ABSENCE, LONGEST_ABSENCE = 120.0, 900.0  # virtual seconds that a relay of the churn is gone
_MINUTE = 60.0


@dataclass(frozen=True)
class Faults:
    """Shares of the relays, from 0 to 1; on the central system of all daemons."""

    kill: float = 0.0  # killed at once, for good
    churn: float = 0.0  # a minute, killed and back with their disk some minutes later
    droppers: float = 0.0  # confirm messages and lose them, from the first on
    select: bool = False  # the droppers work together, and lose only messages of which they hold all copies

    def __bool__(self) -> bool:
        return bool(self.kill or self.churn or self.droppers)


NO_FAULTS = Faults()


def make_droppers(faults: Faults, relays: list[OverlayMember], env: Environment) -> None:
    """Have a share of the relays lose messages."""
    together = Colluders() if faults.select else None
    for relay in env.sample(relays, round(faults.droppers * len(relays))):
        relay.lose_messages(together)


def kill_at_once(faults: Faults, relays: list[OverlayMember], env: Environment) -> None:
    """Kill a share of the relays."""
    for relay in env.sample(relays, round(faults.kill * len(relays))):
        relay.kill()


async def keep_churning(
    faults: Faults, lives: Sequence[Life], env: Environment, nursery: trio.Nursery
) -> None:
    """Kill daemons at random moments, a share of them a minute; each comes back later. Until cancelled."""
    if not faults.churn:
        return
    between = _MINUTE / (faults.churn * len(lives))
    while True:
        await trio.sleep(2 * between * env.uniform(0.0, 1.0))
        up = [life for life in lives if life.is_up]
        if not up:
            continue  # the last one is away already
        life = up[env.below(len(up))]
        life.kill()
        nursery.start_soon(come_back, life, env, nursery)


async def come_back(life: Life, env: Environment, nursery: trio.Nursery) -> None:
    """Start a daemon that was killed, some minutes later."""
    await trio.sleep(env.uniform(SHORTEST_ABSENCE, LONGEST_ABSENCE))
    await life.start(nursery)
