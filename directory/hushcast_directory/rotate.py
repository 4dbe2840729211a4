"""Replaces the keys of a directory that does not run: the new key is signed by the old one, or by nobody."""

from __future__ import annotations

from pathlib import Path

import trio

from hushcast_directory.registry import Registry
from hushcast_directory.run import KEY_FILES
from hushcast_directory.succession import hand_over
from hushcast_directory.upgrade import MIGRATIONS
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.roster import Network
from hushcast_protocol.base.secrets import Seed
from hushcast_runtime.environment import Environment
from hushcast_runtime.files import load_seed, write_private
from hushcast_runtime.layout import DATABASE, migrate
from hushcast_runtime.state_directory import folder_aside
from hushcast_runtime.store import SqliteStore


def replace_signing_key(state: Path, network: Network, env: Environment, signs: bool) -> tuple[Seed, Path]:
    """Draw a new key that signs rosters from the next on; return it, and the folder with the old one.

    The directory is `stopped`. `signs`: the old key signs a hand-over, so that daemons that know it follow.
    Killed at any moment, the directory has the old key or the new one, and what belongs to it.
    """
    file = state / KEY_FILES[0]
    if not file.is_file() or not (state / DATABASE).is_file():
        raise UsageError(f"there is no {file.name} in {state}: a directory makes one when it runs")
    old, new = load_seed(file, env.randomness), Seed.draw(env.randomness)
    trio.run(_note, state, network, old, new, signs)
    aside = folder_aside(state, env.now())
    write_private(aside / file.name, old.reveal())
    write_private(file, new.reveal())
    return new, aside


async def _note(state: Path, network: Network, old: Seed, new: Seed, signs: bool) -> None:
    store = SqliteStore(state / DATABASE)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.run)
            await migrate(store, MIGRATIONS)
            registry = Registry(network, old, store, first_roster=1)
            await registry.load()
            epoch = registry.newest.epoch + 1 if registry.newest is not None else 0
            await hand_over(store, network, old, new, epoch, signs)
            nursery.cancel_scope.cancel()
    finally:
        store.close()
