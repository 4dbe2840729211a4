"""A server announces another wire a day ahead, and its network goes on to it under traffic, and back."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
import trio
from daemons import CentralNetworkOfDaemons, Node, daemons
from drilled_wire import BOTH, LinksOpened, mix_releases, release
from small_central import Member, SmallCentral, small_central
from small_network import EPOCH_SECONDS, ONE, until
from talk import Talk

from hushcast_central.proxy import server_link
from hushcast_central.user import user_links
from hushcast_cli.operate.status_summary import summary
from hushcast_node.central_doctor import examine_central
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.findings import Finding
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.versions import wires
from hushcast_protocol.base.versions.wires import LASTING
from hushcast_protocol.central.frames import MAX_CENTRAL_FRAME, Attach, Ping, Pong, decode_to_user
from hushcast_protocol.content.bodies import Content
from hushcast_runtime.logs import log
from hushcast_runtime.transports.channel import open_channel

GONE_ON = "this network speaks wire 2, and this program wire 1"
EVERY = 20.0  # virtual seconds between two publications


async def publish(network: CentralNetworkOfDaemons, sent: list[bytes], numbers: Iterator[int]) -> None:
    """Publish now and then, whatever happens around."""
    while True:
        payload = b"%d" % next(numbers)
        with release(BOTH):
            await network.nodes[1].daemon.service.enqueue(ONE, Content(payload))
        sent.append(payload)
        await trio.sleep(EVERY)


async def upgrade(members: list[Member]) -> None:
    """Restart them one after the other, as a release that speaks one wire more."""
    with release(BOTH):
        for member in members:
            await member.restart()
            await trio.sleep(EPOCH_SECONDS / 4)


async def change_to(network: SmallCentral, wire: int) -> float:
    """Have the server's operator ask for a wire; return the time at which it comes into force."""
    server = network.server.daemon
    with release(BOTH):
        await server.announce(wire)
        coming = server._wire.now
    assert coming.coming == wire
    assert coming.begins % EPOCHS_A_DAY == 0
    ahead = network.calendar.epoch_start(coming.begins) - network.now
    assert ahead > network.calendar.day_seconds
    return trio.current_time() + ahead


@pytest.mark.slow
async def test_a_network_goes_on_and_back_under_traffic(monkeypatch: pytest.MonkeyPatch) -> None:
    mix_releases(monkeypatch)
    opened = LinksOpened(monkeypatch, server_link, user_links)
    async with daemons(2) as network:
        sent: list[bytes] = []
        ear = await network.nodes[0].listen()
        ear.close()
        network.nursery.start_soon(publish, network, sent, count())
        await trio.sleep(EPOCH_SECONDS)
        await upgrade([*network.members, *network.nodes])
        on = await change_to(network, 2)
        await trio.sleep(on - trio.current_time() + 2 * EPOCH_SECONDS)
        assert network.nodes[1].daemon.status()["wire"]["now"] == 2
        await upgrade(network.members)
        back = await change_to(network, 1)
        await trio.sleep(back - trio.current_time() + 2 * EPOCH_SECONDS)
        assert opened.between(0.0, on - 1) - {LASTING} == {1}, "none of what one can, before it is spoken"
        assert opened.between(on + 1, back - 1) - {LASTING} == {2}
        assert opened.between(back + 1, trio.current_time()) - {LASTING} == {1}
        ear = await network.nodes[0].listen()
        heard = await ear.hears(len(sent), 600)
        assert sorted(heard, key=int) == sent, "none lost, none twice"
        assert len(sent) > 100


async def wire_of(node: Node) -> Finding | None:
    found = await examine_central(node.daemon.central)
    (one,) = [one for one in found if one.check == "wire"] or [None]
    return one


@pytest.mark.slow
async def test_who_is_too_old_says_so_dials_nobody_and_refuses_publications(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mix_releases(monkeypatch)
    logged: list[str] = []
    monkeypatch.setattr(log, "_write", lambda level, event, fields: logged.append(event))
    async with daemons(1) as network:
        (node,) = network.nodes
        await node.listen()
        await upgrade(network.members)
        on = await change_to(network, 2)
        await until(lambda: node.daemon.status()["wire"]["coming"] == 2, network.calendar.day_seconds, "told")
        finding = await wire_of(node)
        assert finding is not None
        assert finding.verdict == "warning"
        assert "the network goes on to a wire that this program does not speak" in logged
        await node.daemon.service._publisher.publish(ONE, Content(b"still taken"))
        await trio.sleep(on - trio.current_time() + 2 * EPOCH_SECONDS)
        finding = await wire_of(node)
        assert finding is not None
        assert (finding.verdict, finding.found) == ("bad", GONE_ON)
        assert finding.advice == (
            "install a release that speaks it; subscriptions and what has arrived are kept"
        )
        told = dict(summary(node.daemon.status()))["wire"]
        assert told.startswith("this network speaks wire 2, which this program does not")
        with pytest.raises(Refusal, match=GONE_ON):
            await node.daemon.service._publisher.enqueue(ONE, Content(b"never"), at_once=False)
        opened = node.count("links_opened")
        await trio.sleep(4 * EPOCH_SECONDS)
        assert node.count("links_opened") - opened <= 1, "it asks once a day"
        await upgrade([node])
        with release(BOTH):
            await node.daemon.service._publisher.publish(ONE, Content(b"again"))


@pytest.mark.slow
async def test_a_proxy_that_is_too_old_says_so_and_hears_of_the_way_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mix_releases(monkeypatch)
    async with small_central() as network:
        await upgrade([network.server])
        on = await change_to(network, 2)
        await trio.sleep(on - trio.current_time() + 1)
        proxy = network.deliveries.daemon
        (finding,) = proxy.examine_wire()
        assert (finding.verdict, finding.found) == ("bad", GONE_ON)
        assert proxy.link_state == "open"
        await change_to(network, 1)
        await until(lambda: proxy.status()["wire"]["coming"] == 1, 600, "it hears of the way back")


async def test_a_proxy_whose_server_speaks_another_wire_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    mix_releases(monkeypatch)
    unchanged = "hushcast_protocol.base.versions.translations:UNCHANGED"
    later = wires.WireTable({2: "drilled_wire:DRILL", 3: unchanged})
    async with small_central() as network:
        await network.server.stop()
        with release(later):
            await network.server.start()
        proxy = network.deliveries.daemon
        await until(lambda: proxy.status()["other_wire"] == "wires 2 to 3", 120, "it met it")
        (finding,) = proxy.examine_wire()
        assert finding.found == "a peer speaks wires 2 to 3, and this program wire 1"
        assert network.deliveries.count("links_of_other_wires") > 0
        assert network.deliveries.count("server_faults") == 0


async def lasting(network: SmallCentral) -> Talk:
    proxy = network.deliveries.listed
    link = Link.initiate(network.net.id, proxy.key, network.env.randomness, MAX_CENTRAL_FRAME, wire=LASTING)
    channel, _ = await open_channel(
        network.wires.transport(), proxy.address, network.env.isolation(), link, decode_to_user
    )
    return Talk(channel)


async def test_everybody_is_told_what_is_spoken_and_nothing_else_in_that_wire() -> None:
    async with small_central() as network:
        talk = await lasting(network)
        answer = await talk.ask(Ping())
        assert isinstance(answer, Pong)
        assert answer.announced == network.server.daemon._wire.signed
        await talk.close()
        talk = await lasting(network)
        await talk.say(Attach(bytes(32), bytes(16)))
        assert await talk.hear() is None, "it is closed"


async def test_a_server_from_a_backup_announces_anew() -> None:
    async with small_central() as network:
        proxy, server = network.deliveries.daemon, network.server
        before = server.daemon._wire.signed
        await until(lambda: proxy._wire.signed == before, 60, "it was handed on")
        await server.stop()
        server.store._records.pop("wire")
        await server.start()
        await until(lambda: proxy._wire.signed == server.daemon._wire.signed != before, 600, "the newer one")
