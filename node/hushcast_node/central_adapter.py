"""The central system's adapter in a daemon: the proxies that its network.toml lists, and the carrier."""

from __future__ import annotations

from typing import Any

import trio

from hushcast_central.held_wire import HeldWire
from hushcast_central.user.attachments import UserAttachments
from hushcast_central.user.carrier import CentralCarrier
from hushcast_central.user.credentials import CredentialsMaker
from hushcast_central.user.greeting import greet, keep_heard
from hushcast_central.user.introducer import Introducer
from hushcast_central.user.past_questions import PastQuestions
from hushcast_central.user.pseudonym import PseudonymRecords
from hushcast_central.user.pseudonym_upkeep import PseudonymUpkeep
from hushcast_central.user.publisher import CentralPublisher
from hushcast_central.user.reachability import Reachability
from hushcast_central.user.routes import CentralRoutes
from hushcast_central.user.token_registration import TokenRegistration
from hushcast_central.user.upkeep import ReceiverUpkeep
from hushcast_central.user.user_links import UserLinks
from hushcast_central.user.withdrawals import PseudonymWithdrawals
from hushcast_local.topic_keys import Derive, TopicKeys
from hushcast_node.carrier_adapter import AdapterContext
from hushcast_node.carrier_parts import CentralParts
from hushcast_protocol.base.findings import Finding
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.central.frames import Pong
from hushcast_protocol.central.network import PROXY_ROLES, Proxy, ProxyRole
from hushcast_protocol.content.tokens import OPEN_KEY, hashed_topic_key
from hushcast_runtime.context import Context
from hushcast_runtime.environment import Environment
from hushcast_runtime.storage.past_days import PastDaysRecords
from hushcast_runtime.wording import counted


class CentralAdapter:
    """One daemon's place in the central system; implements `CarrierAdapter`."""

    def __init__(self, parts: CentralParts, around: AdapterContext) -> None:
        self._parts = parts
        self._env = around.env
        self._heard = Reachability(around.store, around.env)
        self._wire = HeldWire(parts.network, around.store, around.env)
        self._links = UserLinks(
            parts.network,
            parts.proxies,
            around.transport,
            self._heard,
            self._wire,
            around.env,
            around.counters,
        )
        self._routes: CentralRoutes | None = None

    @property
    def routes(self) -> CentralRoutes:
        """What the server keeps routed for this daemon; there are some once `start` has returned."""
        assert self._routes is not None
        return self._routes

    @property
    def role(self) -> str:
        """`client`: servers and proxies are programs of their own."""
        return "client"

    @property
    def profile_name(self) -> str:
        """Which profile is in use."""
        return self._parts.profile.name

    @property
    def ready(self) -> bool:
        """Tell whether a proxy of each role has ever answered."""
        return not self._heard.missing

    @property
    def cut_off(self) -> str | None:
        """Why nothing gets to or from the server, by what worked last; `None`: something does, or may."""
        return self._heard.cut_off

    def topic_keys(self, env: Environment, derive: Derive) -> TopicKeys:
        """Return what derives the keys of topics: as published, nobody's work and nobody's secret."""
        profile = self._parts.profile
        return TopicKeys(
            self._parts.network.id,
            env,
            derive if profile.stretches_topics else hashed_topic_key,
            None if profile.seals_bodies else OPEN_KEY,
        )

    async def start(self, context: Context) -> CentralCarrier:
        """Make the carrier, and greet proxies that never answered, or are silent."""
        parts, heard, links = self._parts, self._heard, self._links
        calendar, profile = parts.network.calendar, parts.profile
        await heard.load()
        await self._wire.load()
        records = PseudonymRecords(context.store)
        credentials = CredentialsMaker(profile, calendar, records, context.env)
        await credentials.load()
        introducer = Introducer(parts.network, context.env, context.counters)
        registering = TokenRegistration(introducer, records, calendar, context)
        withdrawals = PseudonymWithdrawals(links, registering, records, calendar, context)
        attachments = UserAttachments(profile, context)
        past = PastQuestions(links, credentials, registering, attachments, withdrawals, records, context)
        tending = PseudonymUpkeep(links, registering, attachments, past, calendar, context)
        upkeep = ReceiverUpkeep(links, credentials, registering, tending, withdrawals, records, context)
        days = PastDaysRecords(context.store)
        self._routes = CentralRoutes(profile, calendar, upkeep, withdrawals, records, days, context)
        publications = CentralPublisher(
            parts.network, profile, links, introducer, credentials, heard, context
        )
        for role in PROXY_ROLES:
            context.spawn(keep_heard, links, heard, role, context.env)
        return CentralCarrier(calendar, heard, self._wire, publications, self._routes, context.env)

    async def greet(self) -> list[tuple[ProxyRole, Pong | None]]:
        """Ask all proxies for a sign of life, at once: some may be silent; return what each said."""
        said: dict[PublicKey, Pong | None] = {}

        async def ask(proxy: Proxy) -> None:
            said[proxy.key] = await greet(self._links, proxy)

        async with trio.open_nursery() as nursery:
            for proxy in self._parts.proxies:
                nursery.start_soon(ask, proxy)
        return [(proxy.role, said[proxy.key]) for proxy in self._parts.proxies]

    def examine_wire(self) -> list[Finding]:
        """Tell whether this program is left behind, or will be, or a proxy speaks another wire."""
        return self._wire.examine(self._links.other_wires)

    def waits_for(self) -> str:
        """Say what is missing until it is ready."""
        missing = self._heard.missing
        return f"waiting for a proxy for {missing[0]} to answer" if missing else "starting"

    def describe(self) -> str:
        """Say how many proxies there are, and whether the server is known to be away."""
        away = ", the server is away" if self._heard.is_server_there is False else ""
        return f"{counted(len(self._parts.proxies), 'proxy', 'proxies')}{away}"

    def status(self) -> dict[str, Any]:
        """Describe the proxies, and what was last heard of the server."""
        return {
            "proxies": {
                "publications": len(self._links.of("publications")),
                "deliveries": len(self._links.of("deliveries")),
                "silent": self._heard.missing,
            },
            "server": self._heard.is_server_there,
            "wire": self._wire.describe(),
            "other_wire": self._links.other_wires.describe(),
        }
