"""A proxy of the central system: between the server and users, whom it does not know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import trio

from hushcast_central.held_wire import HeldWire
from hushcast_central.program import PROXY
from hushcast_central.proxy.server_link import LinkState, ServerLink
from hushcast_central.proxy.transformation import ProxyTransformation
from hushcast_central.proxy.transformation_keys import TransformationKeys
from hushcast_central.proxy.users import UserChannel, Users
from hushcast_protocol.base import ground_truth
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.crypto.proof_of_work import difficulty_of
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.findings import Finding
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.versions import wires
from hushcast_protocol.base.versions.wires import LASTING
from hushcast_protocol.central.frames import MAX_CENTRAL_FRAME, decode_from_user, decode_sign_of_life
from hushcast_protocol.central.network import CentralNetwork, ProxyRole
from hushcast_runtime.admission import Admission
from hushcast_runtime.context import Context
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.processes.listening_daemon import ListeningDaemon
from hushcast_runtime.processes.own_address import open_address
from hushcast_runtime.storage.state_layout import migrate
from hushcast_runtime.storage.store import Store
from hushcast_runtime.tracing import Tracer
from hushcast_runtime.transports.base import Transport
from hushcast_runtime.transports.channel import accept_channel
from hushcast_runtime.transports.connection_guard import ConnectionGuard


@dataclass(frozen=True)
class ProxyParts:
    """What a proxy is made of."""

    network: CentralNetwork
    seed: Seed
    """Proves it on links."""
    service: Seed
    """The key of its address."""
    role: ProxyRole
    server_address: Address
    env: Environment
    """With the machine's clock as it is."""
    transport: Transport
    store: Store
    counters: Counters
    tracer: Tracer


class CentralProxy(ListeningDaemon):
    """One proxy. `run` makes it live; once that has started it has an address."""

    def __init__(self, parts: ProxyParts) -> None:
        super().__init__(parts.env, parts.network.calendar, parts.counters)
        self._parts = parts
        calendar = parts.network.calendar
        self._keys = TransformationKeys(parts.store, calendar, parts.role == "deliveries")
        self._admission = Admission(parts.seed.public(), calendar, self._env, self._by_room)
        self._wire = HeldWire(parts.network, parts.store, self._env)
        self._server: ServerLink | None = None
        self._passing: ProxyTransformation
        self._users: Users | None = None

    @property
    def link_state(self) -> LinkState:
        """How it stands with the server."""
        return self._server.state if self._server is not None else "not reached"

    def examine_wire(self) -> list[Finding]:
        """Tell whether this program is left behind, or will be, or the server speaks another wire."""
        return self._wire.examine(self._server.other_wires if self._server is not None else None)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Live until cancelled. Reports started when it listens."""
        parts = self._parts
        async with trio.open_nursery() as nursery:
            context = Context(self._env, parts.store, parts.counters, parts.tracer, nursery.start_soon)
            nursery.start_soon(parts.store.run)
            await migrate(parts.store, PROXY.migrations.load())
            await self._keys.load()
            await self._wire.load()
            server = ServerLink(
                parts.network, parts.seed, parts.server_address, parts.transport, self._wire, context
            )
            self._passing = ProxyTransformation(parts.role, self._keys, self._admission, server, context)
            users = Users(self._passing, self._admission, server, context)
            self._server, self._users = server, users
            listener = self.listener = await open_address(parts.service, parts.transport, parts.store)
            # Nobody shows a name here: users are limited where they are served.
            guard = ConnectionGuard(self._accept, users.serve, 0, self._env, parts.counters)
            nursery.start_soon(listener.serve, guard.admit)
            nursery.start_soon(server.run)
            nursery.start_soon(self._admission.run)
            nursery.start_soon(self._keep_time)
            parts.tracer.tell(ground_truth.Started(parts.role, parts.network.profile))
            task_status.started()

    def status(self) -> dict[str, Any]:
        """Describe it, by no pseudonym and no user."""
        users = self._users
        met = self._server.other_wires if self._server is not None else None
        return {
            "role": self._parts.role,
            "server_connected": int(self.link_state == "open"),
            "link": self.link_state,
            "pseudonyms": len(self._keys),
            "connections": len(users) if users is not None else 0,
            "attached": users.attached if users is not None else 0,
            "difficulty": self._admission.difficulty,
            "wire": self._wire.describe(),
            "other_wire": met.describe() if met is not None else None,
            "clock": self.clock.describe(),
            "counters": self.counters.as_dict(),
        }

    def _by_room(self) -> int:
        """Return the bits of stamps that the room which lasts asks for, here or at the server."""
        theirs = self._server.difficulty if self._server is not None else 0
        return max(difficulty_of(self._keys.fullness()), theirs)

    async def _accept(self, stream: trio.abc.Stream) -> UserChannel:
        parts = self._parts
        link = Link.respond(
            parts.network.id,
            parts.seed,
            self._env.randomness,
            MAX_CENTRAL_FRAME,
            takes=(LASTING, *wires.spoken().numbers()),
        )
        channel, _ = await accept_channel(stream, link, decode_from_user)
        self.counters.add("links_opened")
        return channel.speaking(decode_sign_of_life) if link.wire == LASTING else channel

    async def _keep_time(self) -> None:
        calendar = self._parts.network.calendar
        while True:
            now = self._env.now()
            if self._env.is_certain() and self._keys.expire(now):
                self._passing.forget_results()
            await self._env.sleep_until(calendar.next_middle(now))
