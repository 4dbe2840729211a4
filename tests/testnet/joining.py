"""Testnets in the private Tor network that all tests share: to start another takes half a minute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import trio

from hushcast_testnet import testnet
from hushcast_testnet.builder import Builder, Keep, Layout, Progress
from hushcast_testnet.inventory import Member, Testnet
from hushcast_testnet.process_backend import ProcessBackend
from hushcast_testnet.tor.private_tor import TorNetwork

EPOCH = 3600  # seconds


class Joining(ProcessBackend):
    """Daemons in a private Tor network that is there already."""

    def __init__(self, directory: Path, network: TorNetwork) -> None:
        super().__init__(directory, "tor", breakable=False)
        self._tor = network

    async def prepare(
        self, testnet: Testnet, members: Sequence[Member], keep: Keep, progress: Progress
    ) -> None:
        """Start nothing, and have nothing stopped."""


@contextmanager
def joined(directory: Path, network: TorNetwork, layout: Layout) -> Iterator[None]:
    """Have a testnet up in a directory."""
    backend = Joining(directory, network)
    trio.run(testnet._up, Builder(directory, backend, layout, EPOCH, False, lambda text: None))
    try:
        yield
    finally:
        testnet.down(directory)
