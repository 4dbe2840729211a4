"""A directory's configuration that is read again while it starts, which takes minutes where tor is slow."""

from __future__ import annotations

from pathlib import Path

import pytest
from directory_bench import BEGIN

from hushcast_directory.server.configured_set import ConfiguredSet
from hushcast_directory.server.process import KEY_FILES, _Directory
from hushcast_directory.server.settings import DirectorySettings
from hushcast_protocol.base.addresses import onion_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.files import load_seed
from hushcast_runtime.processes.config import load_settings
from hushcast_runtime.processes.examined_process import ProcessContext
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.transports.memory import MemoryNetwork

OTHERS = [Seed(bytes([number]) * 32) for number in range(1, 5)]


def members(*seeds: Seed) -> str:
    return ", ".join(
        f'{{ key = "{seed.public().hex()}", address = "{onion_address(seed.public())}" }}' for seed in seeds
    )


def configured(
    state: Path,
    now: tuple[Seed, ...],
    following: tuple[Seed, ...] = (),
    first: int = 1,
    profile: str = "hardened",
) -> DirectorySettings:
    text = f'state = "{state}"\nfirst_roster = {first}\n[network]\nname = "n"\nprofile = "{profile}"\n'
    text += f"[authorities]\nquorum = 2\nmembers = [{members(*now)}]\n"
    if following:
        text += f"[authorities.next]\nquorum = 3\nmembers = [{members(*following)}]\n"
    file = state / "directory.toml"
    file.write_text(text)
    return load_settings(file, DirectorySettings)


def around() -> ProcessContext:
    env = simulated_environment("reload", BEGIN)
    return ProcessContext(env, Counters(()), MemoryStore(), MemoryNetwork(lambda: 0.1).transport())


async def test_whom_a_directory_votes_for_is_what_it_read_last_while_it_started(tmp_path: Path) -> None:
    own = load_seed(tmp_path / KEY_FILES[0], simulated_environment("key", BEGIN).randomness)
    now = (own, *OTHERS[:2])
    process = _Directory(configured(tmp_path, now))
    process._prepare()
    process.apply(configured(tmp_path, now, (own, *OTHERS)))
    directory = process._make(around())
    following = directory.agreeing._configured.following
    assert following is not None
    assert set(following.keys) == {seed.public() for seed in (own, *OTHERS)}


async def test_a_set_without_the_directory_is_refused_while_it_starts(tmp_path: Path) -> None:
    own = load_seed(tmp_path / KEY_FILES[0], simulated_environment("key", BEGIN).randomness)
    process = _Directory(configured(tmp_path, (own, *OTHERS[:2])))
    process._prepare()
    with pytest.raises(UsageError, match="own key is not among them"):
        process.apply(configured(tmp_path, tuple(OTHERS[:3])))
    directory = process._make(around())
    sitting = directory.agreeing._configured
    assert isinstance(sitting, ConfiguredSet)
    assert own.public() in sitting.authorities.keys


async def test_what_takes_a_restart_is_not_taken_with_what_does_not(tmp_path: Path) -> None:
    """The log says that it takes a restart: what the doctor tells and what is done then stay one."""
    own = load_seed(tmp_path / KEY_FILES[0], simulated_environment("key", BEGIN).randomness)
    now = (own, *OTHERS[:2])
    process = _Directory(configured(tmp_path, now, first=10))
    process._prepare()
    directory = process._make(around())
    before = directory.agreeing._configured
    process.apply(configured(tmp_path, now, (own, *OTHERS), first=5, profile="paper"))
    after = directory.agreeing._configured
    assert isinstance(before, ConfiguredSet)
    assert isinstance(after, ConfiguredSet)
    assert after.following is not None
    assert (after.first, after.authorities) == (10, before.authorities)
    assert after.following.shard_size == before.authorities.shard_size > 0
