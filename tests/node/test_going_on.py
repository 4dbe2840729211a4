"""The drill: a network goes on to a next wire under traffic, and nothing is lost by it nor comes twice.

The next wire is that of `drilled_wire`, which has other kinds. Daemons of the release before and of one that
speaks both are the same code here, by another table of wires.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
import trio
from cut_network import cut_network
from drilled_wire import BEFORE, BOTH, LATER, LinksOpened, mix_releases, release
from several_directories import Directories
from small_network import DAY_SECONDS, EPOCH_SECONDS, ONE, Node, SmallNetwork, small_network, until

from hushcast_directory.client import directory_client
from hushcast_directory.server.configured_set import ConfiguredSet, SetOfOne
from hushcast_node.overlay_doctor import examine_overlay
from hushcast_overlay import connector
from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.authorities.heads import Head
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.versions.wires import LASTING, WireTable
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import parse_topic

pytestmark = pytest.mark.slow

TOPIC = parse_topic("over the change")
EVERY = 20.0  # virtual seconds between two publications
EVENING = 12  # epochs later than other networks begin: once all are upgraded a day is nearly over


async def publish(net: SmallNetwork, sent: list[bytes], numbers: Iterator[int]) -> None:
    """Publish now and then, whatever happens around, at a client that goes on with its network."""
    while True:
        payload = b"%d" % next(numbers)
        with release(BOTH):
            await net.clients[1].daemon.service.enqueue(TOPIC, Content(payload))
        sent.append(payload)
        await trio.sleep(EVERY)


async def upgrade(net: SmallNetwork, but: Sequence[Node] = ()) -> None:
    """Restart all daemons, one after the other, as a release that speaks one wire more."""
    with release(BOTH):
        await net.directory.restart()  # type: ignore[attr-defined]
        for node in (*net.relays, *net.clients):
            if node not in but:
                await node.restart()
                await trio.sleep(EPOCH_SECONDS / 2)


async def change_to(net: SmallNetwork, wire: int) -> float:
    """Have the directory's operator ask for a wire; return the time at which it comes into force."""
    ask(net, wire)
    reader = net.clients[0].daemon
    await until(lambda: reader.status()["wire"]["coming"] == wire, 2 * EPOCH_SECONDS)
    change = head_of(net).change
    assert change is not None
    assert change.epoch % EPOCHS_A_DAY == 0
    assert change.epoch > net.calendar.epoch(net.now) + EPOCHS_A_DAY - 2, "a day ahead"
    return trio.current_time() + net.calendar.epoch_start(change.epoch) - net.now


def ask(net: SmallNetwork, wire: int) -> None:
    if isinstance(net.directory, Directories):
        for one in net.directory.all:
            assert isinstance(one.sitting, ConfiguredSet)
            one.sitting = replace(one.sitting, wire=wire)
            assert one.server is not None
            one.server.agreeing.sit(one.sitting)
    else:
        net.directory.agreeing.sit(SetOfOne(len(net.relays), wire=wire))  # type: ignore[attr-defined]


def head_of(net: SmallNetwork) -> Head:
    if isinstance(net.directory, Directories):
        head = net.directory.all[0].head
    else:
        machine = net.directory.agreeing.machine  # type: ignore[attr-defined]
        head = machine.chain.head
    assert head is not None
    return head


async def heard_all(net: SmallNetwork, sent: list[bytes]) -> None:
    """Take what has come for the one subscription of the network: all of it, and nothing twice."""
    ear = await net.clients[0].listen(TOPIC)
    heard = await ear.hears(len(sent), 600)
    assert sorted(heard, key=int) == sent, "none lost, none twice"
    assert len(sent) > 100


async def test_a_network_goes_on_to_another_wire_and_back_under_traffic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mix_releases(monkeypatch)
    opened = LinksOpened(monkeypatch, connector, directory_client)
    async with small_network(relays=4, clients=2, later=EVENING) as net:
        sent: list[bytes] = []
        ear = await net.clients[0].listen(TOPIC)
        ear.close()
        net.nursery.start_soon(publish, net, sent, iter(range(10_000)))
        await trio.sleep(2 * EPOCH_SECONDS)
        await upgrade(net)
        await trio.sleep(EPOCH_SECONDS)
        upgraded = trio.current_time()
        on = await change_to(net, 2)
        await trio.sleep(on - trio.current_time() + 2 * EPOCH_SECONDS)
        assert net.clients[1].daemon.status()["wire"]["now"] == 2
        back = await change_to(net, 1)
        await trio.sleep(back - trio.current_time() + DAY_SECONDS / 8)
        assert opened.between(0.0, on - 1) <= {1, LASTING}, "none of what one can, before it is spoken"
        assert opened.between(upgraded, on - 1) == {1}
        assert opened.between(on + 1, back - 1) == {2}
        assert opened.between(back + 1, trio.current_time()) == {1}
        await heard_all(net, sent)


async def tries(net: SmallNetwork, node: Node) -> tuple[int, float]:
    """Publish where no relay is there; return how often it was tried, and for how long it waits (seconds)."""
    service = node.daemon.service
    await service.enqueue(ONE, Content(b"nobody takes it"))
    await until(lambda: service.outbox()[0]["state"] == "waiting", 60)
    waiting = service.outbox()[0]
    await service.cancel(bytes.fromhex(waiting["id"]))
    return waiting["attempts"], waiting["next_attempt"] - net.now


async def test_two_releases_show_themselves_alike_and_change_with_the_day(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is newest to each: how often who publishes tries, and when it tries again, is of the wire."""
    mix_releases(monkeypatch)
    async with small_network(relays=6, clients=2) as net:

        async def shown(*releases: WireTable) -> list[tuple[int, float]]:
            for relay in net.relays:
                await relay.stop()
            found = []
            for node, of in zip(net.clients, releases, strict=True):
                with release(of):
                    await node.restart()
                    found.append(await tries(net, node))
            with release(BOTH):
                for relay in net.relays:
                    await relay.start()
            return found

        for of in [(BEFORE, BOTH), (BOTH, LATER)]:
            (attempts, pause), (others, longer) = await shown(*of)
            assert attempts == others == 2 * 3
            assert all(15 <= one <= 30 for one in (pause, longer))
        await upgrade(net)
        on = await change_to(net, 2)
        await trio.sleep(on - trio.current_time() + 2 * EPOCH_SECONDS)
        (attempts, pause), (others, longer) = await shown(BOTH, LATER)
        assert attempts == others == 2 * 2
        assert all(45 <= one <= 90 for one in (pause, longer))


def told_of_wire(net: SmallNetwork, node: Node) -> Any:
    side = node.daemon.overlay
    return examine_overlay(side, None, node.identity is not None, net.env)


@pytest.mark.parametrize(
    "relays",
    [pytest.param(11, id="9 percent", marks=pytest.mark.soak), pytest.param(9, id="11 percent")],
)
async def test_the_network_goes_on_without_who_lags_and_who_lags_says_so(
    monkeypatch: pytest.MonkeyPatch, relays: int
) -> None:
    """One relay is not upgraded: it loses its seat as the change comes, and has it again once it is."""
    mix_releases(monkeypatch)
    async with small_network(relays=relays, clients=2, later=EVENING) as net:
        await goes_on_without(net, net.relays[0])


async def test_a_cut_network_goes_on_without_who_lags(monkeypatch: pytest.MonkeyPatch) -> None:
    mix_releases(monkeypatch)
    async with cut_network(11, later=EVENING) as net:
        assert net.is_cut(net.today)
        await goes_on_without(net, net.relays[0])
        assert net.is_cut(net.today)


async def goes_on_without(net: SmallNetwork, lagging: Node) -> None:
    sent: list[bytes] = []
    ear = await net.clients[0].listen(TOPIC)
    ear.close()
    net.nursery.start_soon(publish, net, sent, iter(range(10_000)))
    await trio.sleep(2 * EPOCH_SECONDS)
    await upgrade(net, but=[lagging])
    on = await change_to(net, 2)
    await trio.sleep(on - trio.current_time() - EPOCH_SECONDS)
    assert inside_of(head_of(net)).count == len(net.relays), "who lags has its seat until then"
    found = {one.check: one for one in await told_of_wire(net, lagging)}
    assert found["wire"].verdict == "warning"
    await trio.sleep(3 * EPOCH_SECONDS)
    with release(BOTH):
        assert inside_of(head_of(net)).count == len(net.relays) - 1
    assert head_of(net).authorities.wire == 2
    found = {one.check: one for one in await told_of_wire(net, lagging)}
    assert (found["wire"].verdict, found["wire"].found) == (
        "bad",
        "this network speaks wire 2, and this program wire 1",
    )
    links = lagging.count("links_opened")
    await trio.sleep(DAY_SECONDS / 2)
    assert lagging.count("links_opened") == links, "it dials nobody"
    with release(BOTH):
        await lagging.restart()
        await until(lambda: inside_of(head_of(net)).count == len(net.relays), DAY_SECONDS, "it has a seat")
    await trio.sleep(on + DAY_SECONDS + 2 * EPOCH_SECONDS - trio.current_time())
    await heard_all(net, sent)
