"""Replaces the keys of a directory that does not run: the new key is signed by the old one, or by nobody."""

from __future__ import annotations

from pathlib import Path

import trio

from hushcast_directory.server.former_rosters import last_signed
from hushcast_directory.server.kept_evidence import AUTHORITY, read_kept
from hushcast_directory.server.process import KEY_FILES
from hushcast_directory.server.restoration import last_restored
from hushcast_directory.server.succession import hand_over, load_succession
from hushcast_directory.server.upgrade import MIGRATIONS
from hushcast_protocol.authorities.chain import Chain
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.roster import Network
from hushcast_protocol.base.secrets import Seed
from hushcast_runtime.environment import Environment
from hushcast_runtime.files import load_seed, write_private
from hushcast_runtime.storage.state_directory import folder_aside
from hushcast_runtime.storage.state_layout import DATABASE, migrate
from hushcast_runtime.storage.store import SqliteStore, Store


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
            await hand_over(store, network, old, new, await _next_epoch(store, network, old), signs)
            nursery.cancel_scope.cancel()
    finally:
        store.close()


async def _next_epoch(store: Store, network: Network, old: Seed) -> int:
    """Return the first epoch for which the old key has signed nothing; `UsageError` where it is not alone."""
    succession = await load_succession(store, network, old.public())
    signed = await last_signed(store, network, old.public(), succession.past)
    last = max(await last_restored(store), -1 if signed is None else signed.epoch)
    for _, value in await store.scan(AUTHORITY):
        kept = read_kept(value)
        chain = Chain(network.id, kept.chain)
        coming = None if chain.head is None else chain.head.change
        if kept.chain.authorities.keys != (old.public(),) or coming is not None:
            raise UsageError("one of several directories is known by its key: have a quorum vote for another")
        last = max(last, chain.epoch, kept.voted, kept.assented)
    return last + 1
