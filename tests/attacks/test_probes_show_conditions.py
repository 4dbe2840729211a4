"""A relay that knows a topic, and a fellow subscriber, read probes and reports for others' conditions.

They want all conditions of a subscription. They get the one by which messages enter its tree, which leases
show to whoever knows the topic; of the others, nothing.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
import trio
from small_network import Node, SmallNetwork, derive, small_network

from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.content.attributes import Number
from hushcast_protocol.content.bodies import Content, open_body
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.reports import SETTLED, decode_report
from hushcast_protocol.content.topics import make_topic

pytestmark = pytest.mark.slow

FIRES = make_topic("fires", ["kind", "lat:-90..90:0.001", "lon:-180..180:0.001"])
WHERE = 'lat in [60.1, 60.2], lon in [24.9, 24.95], kind = "arson at depot 7"'
PLACE = {attribute.name: attribute for attribute in FIRES.attributes if isinstance(attribute, Number)}
EPOCH = 1200


def read_probes(net: SmallNetwork, relay: Node) -> list[Content]:
    """Open what is dropped at a relay, as whoever runs it and knows the topic can."""
    assert relay.daemon.overlay.relay is not None
    take = relay.daemon.overlay.relay.drops.take
    seen: list[Content] = []

    async def tap(message: Message) -> Any:
        try:
            content = open_body(derive(FIRES, net.net.id, message.day), message)
        except AuthenticationError:
            return await take(message)
        if content.probe:
            seen.append(content)
        return await take(message)

    relay.daemon.overlay.relay.drops.take = tap  # type: ignore[method-assign]
    return seen


def at(lat: str, lon: str) -> dict[str, str | int]:
    """The attributes of a message from a place."""
    return {
        "kind": "arson at depot 7",
        "lat": PLACE["lat"].place(Decimal(lat)),
        "lon": PLACE["lon"].place(Decimal(lon)),
    }


async def test_probes_show_the_entry_condition_and_no_other() -> None:
    async with small_network(relays=3, clients=1, epoch=EPOCH, probes_an_epoch=120.0) as net:
        victim = net.clients[0]
        await victim.listen(FIRES, WHERE)
        seen = read_probes(net, net.relays[0])
        await trio.sleep(EPOCH / 2)
        assert len(seen) >= 20
        lat = [float(PLACE["lat"].value(int(probe.values["lat"]))) for probe in seen if "lat" in probe.values]
        lon = [float(PLACE["lon"].value(int(probe.values["lon"]))) for probe in seen]
        assert all(24.9 <= place <= 24.95 for place in lon)  # relays hold its cover, opaque as it is
        assert min(lat) < -45
        assert max(lat) > 45
        kinds = [probe.values["kind"] for probe in seen if "kind" in probe.values]
        assert len(set(kinds)) == len(kinds) > 5
        # They serve their purpose all the same.
        told = victim.route(FIRES).coverage.describe()
        assert told["probes"] >= 20
        assert told["share"] == told["delivered"] == 1.0
        assert victim.count("messages_delivered") == 0


async def test_reports_show_the_entry_condition_and_no_other() -> None:
    """They name what came, wanted or not: only that which let it in is the same in all.

    Values of probes are like those of what came, wanted or not, too.
    """
    async with small_network(relays=3, clients=1, epoch=2 * EPOCH, probes_an_epoch=240.0) as net:
        ear = await net.clients[0].listen(FIRES, WHERE)
        for lat in ("-60", "0", "60.15"):
            await net.drop_at(net.relays[0], FIRES, Content(b"%s" % lat.encode(), at(lat, "24.92")))
        await net.drop_at(net.relays[0], FIRES, Content(b"elsewhere", at("60.15", "0")))
        await ear.hears(1)
        seen = read_probes(net, net.relays[0])
        await trio.sleep(3 * SETTLED)
        assert ear.payloads == [b"60.15"]
        told = {heard.values["lat"] for probe in seen for heard in decode_report(probe.payload).heard}
        assert told == {at(lat, "24.92")["lat"] for lat in ("-60", "0", "60.15")}
