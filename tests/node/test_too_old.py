"""Who does not speak what the network went on to learns it from heads, says so, and promises nothing."""

from __future__ import annotations

import pytest
import trio
from later_release import LaterRelease
from small_network import DAY_SECONDS, EPOCH_SECONDS, Node, SmallNetwork, small_network, until

from hushcast_cli.operate.status_summary import summary
from hushcast_directory.server.configured_set import SetOfOne
from hushcast_node.overlay_doctor import examine_overlay
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.findings import Finding
from hushcast_protocol.base.versions.wires import spoken
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import parse_topic
from hushcast_runtime.logs import log

pytestmark = pytest.mark.slow

TOPIC = parse_topic("what is published")
GONE_ON = "this network speaks wire 2, and this program wire 1"


async def wire_of(net: SmallNetwork, node: Node) -> Finding | None:
    found = await examine_overlay(node.daemon.overlay, None, node.identity is not None, net.env)
    (one,) = [one for one in found if one.check == "wire"] or [None]
    return one


async def test_too_old_daemons_say_so_dial_no_relay_and_refuse_publications() -> None:
    async with small_network(relays=3, clients=2) as net:
        reader, writer = net.clients
        ear = await reader.listen(TOPIC)
        await writer.daemon.service._publisher.publish(TOPIC, Content(b"before"))
        assert await ear.hears(1) == [b"before"]
        later = LaterRelease(net)
        await later.take_over()
        later.agree(2)
        everybody = [*net.relays, *net.clients]
        await until(lambda: all(node.daemon.status()["wire"]["now"] == 2 for node in everybody), 300)
        for node in everybody:
            finding = await wire_of(net, node)
            assert finding is not None
            assert (finding.verdict, finding.found) == ("bad", GONE_ON)
            assert finding.advice == (
                "install a release that speaks it; subscriptions and what has arrived are kept"
            )
            told = dict(summary(node.daemon.status()))["wire"]
            assert told.startswith("this network speaks wire 2, which this program does not")
        publisher, waiting = writer.daemon.service._publisher, writer.daemon.status()["outbox"]
        for at_once in (True, False):
            with pytest.raises(Refusal, match=GONE_ON):
                await publisher.enqueue(TOPIC, Content(b"never"), at_once=at_once)
        assert writer.daemon.status()["outbox"] == waiting, "it could not succeed, so it does not wait"
        dialled, opened = later.asked, writer.count("links_opened") + writer.count("links_failed")
        await trio.sleep(4 * EPOCH_SECONDS)
        assert writer.count("links_opened") + writer.count("links_failed") == opened
        assert later.asked - dialled <= 2 * 4 * len(everybody) + len(everybody), "about once an epoch each"
        await writer.restart()
        assert writer.daemon.status()["wire"]["now"] == 2, "it is known again before anybody is asked"


async def test_a_network_that_comes_back_is_followed_on() -> None:
    async with small_network(relays=3, clients=2) as net:
        reader, writer = net.clients
        ear = await reader.listen(TOPIC)
        later = LaterRelease(net)
        await later.take_over()
        later.agree(2)
        await until(lambda: writer.daemon.status()["wire"]["now"] == 2, 300)
        later.agree(1)
        await until(lambda: writer.daemon.status()["wire"]["now"] == 1, 300)
        assert await wire_of(net, writer) is None or writer.daemon.status()["other_wire"] is None
        await writer.daemon.service._publisher.publish(TOPIC, Content(b"again"))
        assert await ear.hears(1) == [b"again"]


async def test_what_comes_is_told_while_all_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[str] = []
    monkeypatch.setattr(log, "_write", lambda level, event, fields: logged.append(event))
    async with small_network(relays=2, clients=1) as net:
        client, machine = net.clients[0], net.directory.agreeing.machine
        assert machine is not None
        assert client.daemon.status()["wire"] == {
            "now": 1,
            "coming": None,
            "begins": None,
            "speaks": [spoken().lowest, spoken().highest],
        }
        assert await wire_of(net, client) is None
        net.directory.agreeing.sit(SetOfOne(2, wire=2))
        await until(lambda: client.daemon.status()["wire"]["coming"] == 2, 2 * EPOCH_SECONDS)
        finding = await wire_of(net, client)
        assert finding is not None
        assert finding.verdict == "warning"
        assert finding.found.startswith("this network speaks wire 2 from 19")
        await client.daemon.service._publisher.publish(TOPIC, Content(b"still taken"))
        await trio.sleep(DAY_SECONDS)
        assert "the network goes on to a wire that this program does not speak" in logged
