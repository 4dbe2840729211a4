"""The brokers' adapter in a daemon: the tree that it holds, its edge broker, and the carrier."""

from __future__ import annotations

from typing import Any

from hushcast_brokers.client.attachment import ClientParts
from hushcast_brokers.client.attachment_records import AttachmentRecords
from hushcast_brokers.client.carrier import BrokersCarrier
from hushcast_brokers.client.community.membership import Membership
from hushcast_brokers.client.model_choice import derive_for, reading_for, tokens_for
from hushcast_brokers.client.publisher import BrokersPublisher
from hushcast_brokers.client.routes import BrokersRoutes
from hushcast_brokers.client.usable_tree import keep_root_heard, keep_usable_tree, reach_root
from hushcast_brokers.community.held_charters import HeldCharters
from hushcast_brokers.held_tree import HeldTree
from hushcast_brokers.tree_request import BrokerContact
from hushcast_local.topic_keys import Derive, TopicKeys
from hushcast_node.carrier_adapter import AdapterContext
from hushcast_node.carrier_parts import BrokersParts
from hushcast_protocol.base.crypto.key_agreement import agreement_key
from hushcast_protocol.base.findings import Finding
from hushcast_protocol.base.versions.network_wire import NetworkWire
from hushcast_protocol.brokers.privacy import read_privacy
from hushcast_runtime.carriers.contact import Contact
from hushcast_runtime.context import Context
from hushcast_runtime.environment import Environment
from hushcast_runtime.wording import counted


class BrokersAdapter:
    """One daemon's place in a network of brokers; implements `CarrierAdapter`."""

    def __init__(self, parts: BrokersParts, around: AdapterContext) -> None:
        self._parts = parts
        self._around = around
        self._root_contact = Contact(around.env.elapsed)
        self._client: ClientParts | None = None
        self._routes: BrokersRoutes | None = None
        self.membership: Membership | None = None
        self.tree = HeldTree(parts.network, around.store, around.counters)

    @property
    def routes(self) -> BrokersRoutes:
        """What brokers keep routed for this daemon; there are some once `start` has returned."""
        assert self._routes is not None
        return self._routes

    @property
    def role(self) -> str:
        """`client`: brokers are programs of their own."""
        return "client"

    @property
    def profile_name(self) -> str:
        """What brokers may learn in this network."""
        return self._parts.network.profile

    @property
    def ready(self) -> bool:
        """Tell whether the root has ever answered."""
        return self.tree.newest is not None

    @property
    def cut_off(self) -> str | None:
        """Why root or edge broker is not reached, by what worked last; `None`: both are, or may be."""
        root, place = self._root_contact, self._routes.attachments.current if self._routes else None
        if root.is_lost:
            return f"the root of the brokers does not answer: the last {root.failed} attempts failed"
        return None if place is None else place.cut_off

    def topic_keys(self, env: Environment, derive: Derive) -> TopicKeys:
        """Return what derives the keys of topics, and makes words of them."""
        network = self._parts.network
        return TopicKeys(network.id, env, derive_for(network) or derive, scheme=tokens_for(network))

    async def start(self, context: Context) -> BrokersCarrier:
        """Make the carrier, and ask the root for a tree where there is none to use."""
        parts, transport = self._parts, self._around.transport
        await self.tree.load()
        root, records = BrokerContact(parts.network.root, parts.root), AttachmentRecords(context.store)
        membership = self.membership = await self._join(context)
        client = self._client = ClientParts(
            *(parts.network, root, self.tree, transport, records, context),
            *(reading_for(parts.network, self.tree, membership, context), self._root_contact),
            *(parts.edge, membership),
        )
        routes = self._routes = BrokersRoutes(client)
        context.spawn(keep_usable_tree, client, routes.attachments.choice)
        context.spawn(keep_root_heard, client)
        if membership is not None:
            membership.is_told = routes.attachments.is_reached
            context.spawn(membership.keep, client.root_now)
        publications = BrokersPublisher(
            parts.network, client.root_now, transport, self._root_contact, membership, context
        )
        return BrokersCarrier(client, publications, routes)

    async def _join(self, context: Context) -> Membership | None:
        """Take this daemon's part in its community, in a network that has any."""
        parts, around = self._parts, self._around
        if not read_privacy(parts.network.profile).is_sealed:
            return None
        assert parts.member is not None, "every daemon of such a network has a key for it"
        keepers = () if parts.community is None else (parts.community,)
        charters = HeldCharters(
            parts.network, agreement_key(parts.member), keepers, around.store, around.counters
        )
        await charters.load()
        return Membership(parts.network, parts.community, charters, around.transport, context)

    async def reach_root(self) -> bool:
        """Ask the root for a sign of life; return whether there was one."""
        return self._client is not None and await reach_root(self._client)

    def waits_for(self) -> str:
        """Say what is missing until it is ready."""
        return "starting" if self.ready else "waiting for the root of the brokers to answer"

    def describe(self) -> str:
        """Say how many brokers there are, and whether the edge broker is away."""
        tree = self.tree.newest
        edge = self.edge()
        away = (
            ", the edge broker is away" if edge is not None and edge["asked"] and not edge["reached"] else ""
        )
        return f"{counted(len(tree.brokers) if tree is not None else 0, 'broker')}{away}"

    def examine_wire(self) -> list[Finding]:
        """Tell whether this program is left behind, or will be, by what its network speaks."""
        return self._wire.examine(self._parts.network.calendar)

    @property
    def _wire(self) -> NetworkWire:
        return self.tree.wire(self._around.env.now())

    def status(self) -> dict[str, Any]:
        """Describe the tree, and the edge broker."""
        tree = self.tree.newest
        held = (
            {"version": tree.version, "brokers": len(tree.brokers), "edges": len(tree.edges)}
            if tree
            else None
        )
        wire = self._wire.describe(self._parts.network.calendar)
        return {"tree": held, "edge": self.edge(), "community": self._community(), "wire": wire}

    def _community(self) -> dict[str, Any] | None:
        """Describe this daemon's part in its community; nothing in a network without."""
        membership = self.membership
        if membership is None or self._parts.member is None:
            return None
        epoch = membership.current()
        return {
            "key": self._parts.member.public().hex(),
            "keeper": self._parts.community.hex() if self._parts.community is not None else None,
            "epoch": epoch.number if epoch is not None else None,
            "missing": membership.missing(),
        }

    def edge(self) -> dict[str, Any] | None:
        """Describe the edge broker in use: how many subscriptions it is asked for, how many it routes."""
        place = self._routes.attachments.current if self._routes is not None else None
        if place is None:
            return None
        asked = place.kept.asked.values()
        return {
            "broker": place.kept.edge.hex(),
            "client": place.kept.key.hex(),
            "reached": place.is_reached,
            "refusal": place.turned_away,
            "asked": len(asked),
            "routed": sum(one.is_routed for one in asked),
        }
