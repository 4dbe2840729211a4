"""Replaces the keys of a directory that does not run: the new one is signed by the old one, or by nobody."""

from __future__ import annotations

from pathlib import Path

import trio

from hushcast_directory.program import DIRECTORY
from hushcast_directory.server.former_rosters import last_signed
from hushcast_directory.server.kept_evidence import AUTHORITY, read_kept
from hushcast_directory.server.process import KEY_FILES
from hushcast_directory.server.restoration import last_restored
from hushcast_directory.server.settings import DirectorySettings
from hushcast_directory.server.succession import hand_over, load_succession
from hushcast_protocol.authorities.chain import Chain
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.roster import Network
from hushcast_runtime.environment import Environment, system_environment
from hushcast_runtime.files import load_seed, write_private
from hushcast_runtime.processes.own_address import ADDRESS
from hushcast_runtime.storage.state_directory import (
    KeyChange,
    StateKind,
    check_named,
    folder_aside,
    replace_keys,
    stopped,
)
from hushcast_runtime.storage.state_layout import DATABASE, migrate
from hushcast_runtime.storage.store import SqliteStore, Store


def rotate_directory(
    settings: DirectorySettings, kind: StateKind, keys: tuple[str, ...], signs: bool
) -> KeyChange:
    """Replace the signing key, unless the one of the address is named; `signs` as `replace_signing_key`.

    Raises `UsageError` where nobody could follow.
    """
    check_named(kind, keys, DIRECTORY.key_names)
    state = settings.state_path()
    if keys and set(keys) != {"signing"}:
        if len(set(keys)) > 1:
            raise UsageError("replace one key at a time, so that daemons can follow")
        return _replace_address(state, kind)
    if settings.authorities is not None:
        raise UsageError(
            "one of several directories is known by its key: have a quorum of them vote for a set with"
            " another one (`authorities.next`)"
        )
    with stopped(state, kind.known):
        new, aside = replace_signing_key(state, kind.network, system_environment(), signs)
    key = new.public().hex()
    line = f'directory_key = "{key}"'
    if signs:
        follows = (
            "Daemons that know the old key follow by themselves when they next ask for a roster: it has "
            "signed the new one. Give newcomers the network.toml that is written at the next start. In the "
            f"[network] of the others this may stand when it suits: {line}"
        )
    else:
        follows = (
            "No daemon follows: tell every member, out of band, to set this in [network] and to restart. "
            f"Until then they go on with the roster they hold: {line}"
        )
    return KeyChange(("signing",), aside, (follows,), {"directory_key": key, "handed_over": signs})


def _replace_address(state: Path, kind: StateKind) -> KeyChange:
    with stopped(state, kind.known):
        aside = replace_keys(state, ["service.key"], [ADDRESS], system_environment().now())
    follows = (
        "The directory has a new address from its next start: every member must set the `directory` of the "
        f"network.toml that it writes into {state} then. Until then they go on with the roster they hold."
    )
    return KeyChange(("service",), aside, (follows,))


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
            await migrate(store, DIRECTORY.migrations.load())
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
