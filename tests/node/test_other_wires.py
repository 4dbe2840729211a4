"""Daemons that meet another wire say so, in status, doctor and log; so does the other end."""

from __future__ import annotations

from contextlib import suppress

import pytest
import trio
from small_network import EPOCH_SECONDS, Node, SmallNetwork, counted, small_network, until

from hushcast_cli.operate.status_summary import summary
from hushcast_node.overlay_doctor import examine_overlay
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.findings import Finding
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.versions.wires import OtherWire, WireRange
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME, decode_overlay
from hushcast_runtime.logs import log
from hushcast_runtime.other_wires import TOLD_FOR
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import accept_channel, open_channel

NEWER = WireRange(2, 3)


async def knock(net: SmallNetwork, key: PublicKey, address: Address) -> None:
    """Open a link of a later wire as a stranger would."""
    link = Link.initiate(net.net.id, key, net.env.randomness, MAX_OVERLAY_FRAME, wire=2)
    await open_channel(net.wires.transport(), address, "test", link, decode_overlay)


async def found(net: SmallNetwork, node: Node) -> dict[str, Finding]:
    side = node.daemon.overlay
    return {one.check: one for one in await examine_overlay(side, None, node.identity is not None, net.env)}


async def answers_in_a_newer_wire(net: SmallNetwork) -> None:
    """Have a program of a later wire take the directory's place."""
    await net.directory.stop()
    seed = net.directory.seed
    listener = await net.wires.transport().listen(seed)

    async def answer(stream: trio.abc.Stream) -> None:
        link = Link.respond(net.net.id, seed, net.env.randomness, MAX_OVERLAY_FRAME, speaks=NEWER)
        with suppress(PeerError, TransportError):
            await accept_channel(stream, link, decode_overlay)

    net.nursery.start_soon(listener.serve, answer)


async def test_a_relay_and_who_calls_it_in_another_wire_both_say_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logged: list[str] = []
    monkeypatch.setattr(log, "_write", lambda level, event, fields: logged.append(event))
    async with small_network(relays=2, clients=0) as net:
        relay = net.relays[0]
        assert relay.daemon.status()["other_wire"] is None
        for _ in range(3):
            with pytest.raises(OtherWire, match="the other end speaks wire 1, and this program wire 1"):
                await knock(net, relay.id, net.directory_entry(relay))
        assert await counted(relay, "links_of_other_wires", 3)
        status = relay.daemon.status()
        assert status["other_wire"] == "wire 2"
        assert "a peer speaks wire 2, which" in dict(summary(status))["wire"]
        finding = (await found(net, relay))["wire"]
        assert (finding.verdict, finding.found) == (
            "warning",
            "a peer speaks wire 2, and this program wire 1",
        )
        assert "install the release" in finding.advice
        told = [event for event in logged if "the other end speaks another wire" in event]
        assert len(told) == 1, "strangers would fill the log"
        assert relay.daemon.ready
        await trio.sleep(TOLD_FOR + 1)
        assert relay.daemon.status()["other_wire"] is None


async def roster_of(net: SmallNetwork, node: Node) -> tuple[str, str, str]:
    finding = (await found(net, node))["roster"]
    return finding.verdict, finding.found, finding.advice


async def test_relay_and_client_say_that_the_directory_is_newer() -> None:
    """And not that it is away, and its operator to be asked."""
    async with small_network(relays=2, clients=1) as net:
        await answers_in_a_newer_wire(net)
        await trio.sleep(2 * EPOCH_SECONDS)
        for node in (net.relays[0], net.clients[0]):
            verdict, told, advice = await roster_of(net, node)
            assert verdict == "bad"
            assert told.endswith("the directory speaks wires 2 to 3, and this program wire 1")
            assert "install the release" in advice
        await until(lambda: net.relays[0].daemon.status()["registration"] is not None, EPOCH_SECONDS)
        assert "speaks wires 2 to 3" in net.relays[0].daemon.status()["registration"]


async def test_a_client_without_any_roster_says_so_too() -> None:
    async with small_network(relays=1, clients=0) as net:
        await answers_in_a_newer_wire(net)
        net.waits = False
        late = net.add("late", is_relay=False)
        await late.start()
        await trio.sleep(90)
        assert (await roster_of(net, late))[:2] == (
            "bad",
            "none: the directory speaks wires 2 to 3, and this program wire 1",
        )
