"""A directory as a daemon: its state is read, its address opened, and its server runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import trio

from hushcast_directory.program import DIRECTORY
from hushcast_directory.server.authority_driver import AuthorityDriver
from hushcast_directory.server.configured_set import ConfiguredSet, SetOfOne
from hushcast_directory.server.directory_server import DirectoryServer
from hushcast_directory.server.roll import Roll
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_runtime.clock import DaemonClock
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.other_wires import OtherWires
from hushcast_runtime.processes.own_address import open_address
from hushcast_runtime.storage.state_layout import migrate
from hushcast_runtime.storage.store import Store
from hushcast_runtime.transports.base import Listener, Transport


@dataclass(frozen=True)
class DirectoryParts:
    """What a directory is made of."""

    roll: Roll
    """Not yet loaded."""
    service: Seed
    """The key of its address."""
    sitting: ConfiguredSet | SetOfOne
    """The directories that agree, or that it is alone."""
    env: Environment
    """With the machine's clock as it is."""
    transport: Transport
    store: Store
    counters: Counters


class Directory:
    """One directory. `run` makes it live; once that has started it has an address."""

    def __init__(self, parts: DirectoryParts) -> None:
        self._parts = parts
        self._server = DirectoryServer(parts.env, parts.transport, parts.roll, parts.sitting, parts.counters)
        self.roll = parts.roll
        self.listener: Listener | None = None

    @property
    def clock(self) -> DaemonClock:
        """The trusted clock."""
        return self._server.clock

    @property
    def agreeing(self) -> AuthorityDriver:
        """What makes its heads."""
        return self._server.agreeing

    @property
    def other_wires(self) -> OtherWires:
        """Whom it met and cannot talk to."""
        return self._server.other_wires

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Live until cancelled. Reports started when it listens."""
        parts, roll = self._parts, self.roll
        async with trio.open_nursery() as nursery:
            nursery.start_soon(parts.store.run)
            await migrate(parts.store, DIRECTORY.migrations.load())
            await roll.load()
            wanted = parts.sitting.address_of(roll.seed.public())
            listener = await open_address(parts.service, parts.transport, parts.store, wanted)
            self.listener = listener
            nursery.start_soon(self._server.run, listener)
            task_status.started()

    def status(self) -> dict[str, Any]:
        """Describe it, by no relay and no other directory."""
        agreeing, found = self.agreeing, dict[str, Any]()
        if not isinstance(self._parts.sitting, SetOfOne):
            found["authorities_reached"] = agreeing.peers.reached
        if agreeing.epoch is not None:
            found["roster"] = {"epoch": agreeing.epoch, "relays": agreeing.relays}
            found["epoch"] = self.roll.calendar.epoch(self._parts.env.now())
        return found
