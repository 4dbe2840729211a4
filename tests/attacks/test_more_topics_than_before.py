"""An MQTT user has sessions with many filters below an alias, each for another room, and waits.

He wants the gateway not to start any more once whoever runs it splits the alias by a label: what was one
topic of the network for all of these filters is then one for each.
"""

from __future__ import annotations

from broker_world import World

import hushcast
from hushcast_gateway.counters import GatewayCounters
from hushcast_gateway.network.gateway_network import GatewayNetwork
from hushcast_gateway.network.network_reader import MAX_WAYS
from hushcast_gateway.network_ways import NetworkWays
from hushcast_gateway.settings import AliasSection, DaemonSection, GatewaySettings, NetworkTopicsSection
from hushcast_protocol.mqtt.topics.permissions import FullPermissions
from hushcast_protocol.mqtt.wire.packets import RequestedSubscription, Subscribe
from hushcast_runtime.environment import simulated_environment

CLIENTS = 6
FILTERS = 100  # of each: with 600 rooms there are more than twice as many topics as places
LINK = hushcast.new_link("the house", ["room"], private=True)


def network(label: str | None) -> tuple[GatewayNetwork, GatewayCounters]:
    alias = AliasSection(name="home", link_file="/unused", label=label)
    settings = GatewaySettings(
        daemon=DaemonSection(socket="/unused"), gateway=NetworkTopicsSection(alias=(alias,))
    )
    counters = GatewayCounters()
    ways = NetworkWays(settings.gateway, {"home": LINK})
    return GatewayNetwork(settings, ways, simulated_environment(1), counters), counters


async def test_a_gateway_starts_however_many_topics_its_sessions_want_now() -> None:
    world = World(network(None)[0])
    for number in range(CLIENTS):
        client = world.connect(f"c{number}", permissions=FullPermissions("mallory"), expiry=100)
        rooms = range(number * FILTERS, (number + 1) * FILTERS)
        client.send(Subscribe(1, [RequestedSubscription(f"hush/home/room{one}/#", 1) for one in rooms]))
        client.lose()
    assert world.broker.subscriptions == CLIENTS * FILTERS
    world._beyond, counters = network("room")
    world.kill()
    assert world.broker.subscriptions == CLIENTS * FILTERS
    assert world._beyond.topics_read == MAX_WAYS
    assert counters.as_dict()["network_subscriptions_refused"] == CLIENTS * FILTERS - MAX_WAYS
    again = world.connect("c0", permissions=FullPermissions("mallory"), expiry=100)  # anew: they are given up
    assert again.link is not None
