"""A client with a SOCKS port and nothing else of a tor publishes, subscribes, goes away, and comes back."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from sockets_seen import connections, socket_owners

import hushcast
from hushcast_directory.server.process import NETWORK_FILE
from hushcast_testnet import processes, testnet

pytestmark = [pytest.mark.tor, pytest.mark.processes]

WITHIN = 120.0  # seconds for anything over Tor, on a busy machine


@asynccontextmanager
async def running(member: testnet.Member) -> AsyncIterator[int]:
    """Run the client; yield its pid once it is ready."""
    command = [sys.executable, "-m", "hushcast_node", member.config]
    process = await processes.launch(member.name, command, Path(member.config).with_name("log"))
    try:
        with trio.fail_after(WITHIN):
            while not (await testnet.describe(member)).get("ready"):  # noqa: ASYNC110
                await trio.sleep(0.1)
        yield process.pid
    finally:
        with trio.CancelScope(shield=True):
            await processes.stop([process])


async def test_a_client_needs_a_socks_port_and_nothing_else(tor_testnet, tmp_path: Path) -> None:
    net, topic = tor_testnet, "by a SOCKS port alone"
    tor = testnet.load(net.directory).tor
    _, socks = tor.clients[0].endpoints()
    member = testnet.Member(
        "alone", "client", str(tmp_path / "config.toml"), str(tmp_path / "state"), str(tmp_path / "socket")
    )
    Path(member.config).write_text(
        f'program = "node"\nrole = "client"\nstate = "{member.state}"\nsocket = "{member.socket}"\n'
        f'[tor]\nmode = "socks"\nsocks = "{socks}"\n'
        + (net.directory / "directory" / "state" / NETWORK_FILE).read_text()
    )
    async with running(member) as pid:
        async with hushcast.connect(member.socket) as daemon, net.listening("client-1", topic) as others:
            async with daemon.subscribe(topic) as messages:
                with trio.fail_after(WITHIN):
                    published = await daemon.publish(topic, "from here")
                    await others.until({published.id})
                    assert (await anext(messages)).id == published.id
                    there = await net.publish("client-2", topic, "from there")
                    assert (await anext(messages)).id == there
            told = (await daemon.status())["tor"]
            assert (told["percent"], told["connected"], told["circuits"]) == (None, True, True)
            looked = {finding.check: finding for finding in await daemon.examine()}
            assert looked["tor"].verdict == "warning"
            assert "circuits end together" in looked["tor"].found
            assert not [finding for finding in looked.values() if finding.verdict == "bad"]
        owners = socket_owners([pid])
        doors = {remote for _, remote, inode, listens in connections(pid, "tcp") if inode in owners}
        assert {port for _, port in doors} == {socks.port}, "it is connected to nothing else"
    meanwhile = await net.publish("client-2", topic, "while it is away")
    async with running(member), hushcast.connect(member.socket) as daemon:
        async with daemon.subscribe(topic) as messages:
            with trio.fail_after(WITHIN):
                assert (await anext(messages)).id == meanwhile
        assert await daemon.unsubscribe(topic)
    assert "does not isolate" not in Path(member.config).with_name("log").read_text()
