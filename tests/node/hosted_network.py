"""A small network whose subscriptions have their boxes at hosts, and what tests ask of these."""

from __future__ import annotations

from small_network import DAY_SECONDS, ONE, Node, SmallNetwork, until

from hushcast_overlay.routes.route_box import RouteBox
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import Interest, Topic
from hushcast_runtime.storage.store import MemoryStore

LONG = 4 * 3600  # seconds of an epoch, so long that no day ends


def box_of(node: Node, topic: Topic = ONE) -> RouteBox:
    """The box of a daemon's subscription."""
    box = node.route(topic).box
    assert box is not None
    return box


def hosts_of(net: SmallNetwork, node: Node) -> list[Node]:
    """The hosts of a daemon's subscription, in order."""
    return [net.relay(relay) for relay in box_of(node).hosts.relays]


def in_use(net: SmallNetwork, node: Node) -> Node:
    """The host that it uses."""
    return net.relay(box_of(node).hosts.current)


async def hosted_elsewhere(net: SmallNetwork) -> Node:
    """Have a relay subscribe that is no host of its own."""
    for reader in net.relays:
        await subscribed(reader)
        if reader not in hosts_of(net, reader):
            return reader
        await reader.daemon.service.unsubscribe(ONE)
    raise AssertionError("each relay drew itself")


async def relays_know(net: SmallNetwork, node: Node, topic: Topic = ONE) -> None:
    """Wait until relays are told of the host that it uses: at a drawn moment, before the day is over."""
    told = node.route(topic).planned.values()
    used = box_of(node, topic).hosts.current
    await until(lambda: all(planned.host == used for planned in told), DAY_SECONDS, "relays are told")


def lose_disk(node: Node) -> None:
    """Have a daemon that is down begin with an empty disk."""
    assert isinstance(node.store, MemoryStore)
    node.store._records.clear()


def copied(node: Node) -> MemoryStore:
    """A copy of a daemon's disk."""
    assert isinstance(node.store, MemoryStore)
    store = MemoryStore()
    store.version = node.store.version
    store._records = {kind: dict(records) for kind, records in node.store._records.items()}
    return store


async def subscribed(node: Node) -> None:
    """Subscribe without an application that listens."""
    (await node.subscribe(Interest(ONE))).close()


async def drop_everywhere(net: SmallNetwork, *payloads: bytes) -> None:
    """Publish at relays of the network that are up, in turn."""
    relays = [relay for relay in net.relays if relay.is_up]
    for number, payload in enumerate(payloads):
        await net.drop_at(relays[number % len(relays)], ONE, Content(payload))
