"""Running testnets for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from running_net import LONG_EPOCH, RunningTestnet

from hushcast_testnet import testnet

EPOCH = 60  # seconds; in each, relays renew what they hold of subscriptions by circuits of their own


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a short name: in it daemons have Unix sockets, whose paths have 107 bytes at most."""
    return tmp_path_factory.mktemp("t")


@pytest.fixture(scope="session")
def tor_testnet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningTestnet]:
    """Ten relays and two clients over a private Tor network."""
    with _running(tmp_path_factory.mktemp("tor"), 10, 2, "tor", EPOCH) as net:
        yield net


@pytest.fixture(scope="session")
def tcp_testnet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningTestnet]:
    """Twelve relays and two clients over loopback."""
    with _running(tmp_path_factory.mktemp("tcp"), 12, 2, "tcp", LONG_EPOCH) as net:
        yield net


Running = Callable[..., AbstractContextManager[RunningTestnet]]


@pytest.fixture(scope="session")
def running_testnet() -> Running:
    """Makes testnets of a test's own: folder, relays, clients, transport, epoch's seconds, directories."""
    return _running


@contextmanager
def _running(
    directory: Path,
    nodes: int,
    clients: int,
    transport: testnet.Transport,
    epoch: int,
    authorities: int | None = None,
) -> Iterator[RunningTestnet]:
    directory = directory / "net"
    testnet.up(directory, nodes, clients, transport, epoch, authorities=authorities)
    try:
        yield RunningTestnet(directory)
    finally:
        testnet.down(directory)
    left = [m.name for m in testnet.load(directory).members if testnet.holder(Path(m.state))]
    assert not left, f"still running: {left}"


@pytest.fixture
def late_on_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have simulations of the overlay begin five and a half hours before a day ends.

    What happens at a drawn moment of what is left of the day happens soon, and so does midnight.
    """
    from hushcast_testnet.simulations import overlay_simulation  # real testnets start without it
    from hushcast_testnet.simulations.scenario import EPOCH_SECONDS

    monkeypatch.setattr(overlay_simulation, "BEGIN", overlay_simulation.BEGIN + 16 * EPOCH_SECONDS)
