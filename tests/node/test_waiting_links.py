"""Links that wait for more: none has a task, whatever ends one is heard, and its place is given back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import trio
from hosted_network import LONG, subscribed
from small_network import ONE, Node, SmallNetwork, small_network, until

from hushcast_overlay.relay import link_reader
from hushcast_overlay.relay.link_reader import LinkReader
from hushcast_overlay.relay.peers import Peers
from hushcast_overlay.relay.session import Session
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.overlay.frames import Ack, Ping
from hushcast_runtime.storage.spool import SpooledMessage


def tasks() -> Iterator[trio.lowlevel.Task]:
    waiting = [trio.lowlevel.current_root_task()]
    while waiting:
        task = waiting.pop()
        assert task is not None
        yield task
        waiting += [child for nursery in task.child_nurseries for child in nursery.child_tasks]


def peers_of(node: Node) -> Peers:
    assert node.daemon.overlay.relay is not None
    return node.daemon.overlay.relay.peers


def links_in(net: SmallNetwork) -> int:
    return sum(peers_of(node).open_links() for node in net.relays)


async def test_idle_links_have_no_tasks() -> None:
    async with small_network(relays=5, clients=1, epoch=LONG) as net:
        ear = await net.clients[0].listen()
        before = len(list(tasks()))
        await trio.sleep(2000)
        assert links_in(net) >= 8
        names = {task.name for task in tasks()}
        assert not [name for name in names if "LinkReader" in name or "Peers" in name]
        assert len(list(tasks())) <= before + 1
        await net.drop_at(net.relays[0], ONE, Content(b"they carry messages all the same"))
        await until(lambda: ear.payloads == [b"they carry messages all the same"])


async def test_signs_of_life_and_their_answers_start_none(monkeypatch: pytest.MonkeyPatch) -> None:
    attended: list[Any] = []
    attend = LinkReader._attend

    async def noted(*told: Any) -> None:
        attended.append(told)
        await attend(*told)

    async with small_network(relays=5, clients=1, epoch=LONG) as net:
        await subscribed(net.clients[0])
        await trio.sleep(300)
        opened = net.count("links_opened")
        monkeypatch.setattr(LinkReader, "_attend", noted)
        await trio.sleep(1500)
        assert net.count("links_opened") == opened, "none has idled out, so that signs of life came"
        assert attended == []


async def test_who_says_much_at_once_has_a_task_beside_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_reader, "_AT_ONCE", 2)
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        relay, other = net.relays
        assert other.identity is not None
        channel = await net.knock(relay, other.identity.seed)
        await channel.send(*[Ping()] * 7)
        assert await channel.one(5) == Ack(0, ())
        await channel.send(Ping())
        assert await channel.one(5) == Ack(0, ())
        await channel.aclose()


async def test_the_end_of_a_daemon_ends_its_links_at_others() -> None:
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        relay, other = net.relays
        assert other.identity is not None
        channel = await net.knock(relay, other.identity.seed)
        await trio.sleep(1)
        assert peers_of(relay).open_links() == 1
        await relay.stop()
        assert await channel.receive() == []
        await channel.aclose()


async def test_a_link_that_ends_is_forgotten_while_nobody_reads() -> None:
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        relay, other = net.relays
        assert other.identity is not None
        for _ in range(3):
            channel = await net.knock(relay, other.identity.seed)
            await trio.sleep(1)
            assert peers_of(relay).open_links() == 1
            await channel.aclose()
            await until(lambda: peers_of(relay).open_links() == 0)
        assert relay.count("links_failed") == 0


async def test_an_error_of_this_program_costs_its_link_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise KeyError("an error of this program")

    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        relay, other = net.relays
        assert other.identity is not None
        channel = await net.knock(relay, other.identity.seed)
        await trio.sleep(1)
        with monkeypatch.context() as patched:
            patched.setattr(Session, "flush", fails)
            await channel.send(Ping())
            assert await channel.receive() == []
        await channel.aclose()
        assert relay.count("internal_errors") == 1
        assert peers_of(relay).open_links() == 0
        relay.daemon.counters.add("internal_errors", -1)
        channel = await net.knock(relay, other.identity.seed)
        await channel.send(Ping())
        assert await channel.one(5) == Ack(0, ())
        await channel.aclose()


async def test_a_daemon_ends_while_much_waits_to_be_acknowledged() -> None:
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        relay, other = net.relays
        assert other.identity is not None
        channel = await net.knock(relay, other.identity.seed)
        await trio.sleep(1)
        (link,) = [link for peer in peers_of(relay)._peers.values() for link in peer.links]
        message = net.composed(ONE, Content(b"x"))
        link.send([SpooledMessage(bytes(8), message, 1)] * (link_reader._SETTLED_AT_ONCE + 1), 1, 0.0)
        counters = relay.daemon.counters
        await relay.stop()
        assert await channel.receive() == []
        await trio.sleep(1)
        assert counters["internal_errors"] == 0
