"""The keeper of a testnet's community, which all brokers and nodes are in to begin with."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import trio

from hushcast_brokers.community import keeper_directory
from hushcast_brokers.community.charter_sender import send_charter
from hushcast_brokers.keys import COMMUNITY_KEY
from hushcast_runtime.environment import system_environment
from hushcast_runtime.files import load_seed, private_directory
from hushcast_runtime.transports.base import TransportError
from hushcast_testnet.inventory import Member, deadline

TAKEN_WITHIN = 180.0  # seconds for the root to take the charter; over Tor it has just started again
PAUSE = 1.0  # seconds between attempts


class Keeper:
    """One keeper, with a directory as `hushcast admin community new` makes it."""

    def __init__(self, directory: Path, network: str) -> None:
        """`network` is what the root wrote for others to join it."""
        self._randomness = system_environment().randomness
        self._kept = keeper_directory.found(directory, network.encode(), str(directory), self._randomness)

    @property
    def root(self) -> str:
        """The root's key."""
        return self._kept.network.root_key

    @property
    def listed(self) -> str:
        """The line by which the root lists the community."""
        return f'communities = ["{self._kept.key.hex()}"]'

    @property
    def named(self) -> str:
        """The line by which a node names it."""
        return f'community = "{self._kept.key.hex()}"'

    async def begin(self, brokers: Mapping[str, str], nodes: Sequence[Member], config: Path) -> None:
        """Admit brokers, by name and key, and nodes, which get a key each; raise a `HushcastError`.

        `config` is a daemon's that reaches the root.
        """
        members = {bytes.fromhex(key): name for name, key in brokers.items()}
        for node in nodes:
            own = load_seed(private_directory(Path(node.state)) / COMMUNITY_KEY, self._randomness)
            members[own.public()] = node.name
        charter = keeper_directory.sign_next(self._kept, members, int(time.time()), self._randomness)
        with deadline(TAKEN_WITHIN, "the root took no charter of the community in time"):
            while True:
                try:
                    return await send_charter(config, self._kept.network, charter)
                except TransportError:
                    await trio.sleep(PAUSE)
