"""Who watches lines writes down what passes on them, at its moments, and of other connections nothing."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path

import msgspec
import pytest
import trio

from hushcast_protocol.base.errors import UsageError
from hushcast_testnet import testnet
from hushcast_testnet.tor.distance import Distance
from hushcast_testnet.tor.distance_proxy import DistanceOrder, DistanceProxy, TorDoor
from hushcast_testnet.tor.line_watch import OBSERVER, LineWatch, WatchedLines
from hushcast_testnet.tor.private_tor import order_proxy
from hushcast_testnet.tor.tor_network import PreparedNetwork, TorNode

WITHIN = 30.0  # seconds for a few bytes on loopback, on a busy machine


async def answer(stream: trio.SocketStream) -> None:
    """Answer everything with seven bytes."""
    async with stream:
        async for _ in stream:
            await stream.send_all(b"answers")


async def asked(port: int) -> None:
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all(b"question?")
        assert await stream.receive_some() == b"answers"


ASK = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as asking:
    asking.sendall(b"asked")
    assert asking.recv(100) == b"answers"
"""
"""A question of a process that is nobody's tor."""


async def test_a_watched_line_is_traced_and_no_other(tmp_path: Path) -> None:
    pids = [tmp_path / "mine", tmp_path / "not yet"]
    pids[0].write_text(f"{os.getpid()}\n")
    lines = WatchedLines(str(tmp_path), 0.0, 60, ["client-1", "client-2"], [str(file) for file in pids])
    watch = LineWatch(lines)
    proxy = DistanceProxy(Distance(5), watch)
    own = await trio.open_tcp_listeners(0, host="127.0.0.1")
    found = await trio.open_tcp_listeners(0, host="127.0.0.1")
    own_port, port = (one[0].socket.getsockname()[1] for one in (own, found))
    with trio.fail_after(WITHIN):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.serve_listeners, answer, own)
            door = TorDoor("relay0 ORPort", "127.0.0.1", port, "127.0.0.1", own_port)
            nursery.start_soon(trio.serve_listeners, partial(proxy.carry, door), found)
            await trio.run_process([sys.executable, "-c", ASK, str(port)])
            await asked(port)
            nursery.cancel_scope.cancel()
    watch.close()
    file = tmp_path / f"{OBSERVER}.observations.jsonl"
    up, down = (json.loads(line) for line in file.read_text().splitlines())
    told = [(each["node"], each["kind"], each["line"], each["upward"], each["size"]) for each in (up, down)]
    assert told == [
        (OBSERVER, "carried", "client-1", True, 9),
        (OBSERVER, "carried", "client-1", False, 7),
    ]
    assert up["time"] < down["time"]
    assert up["epoch"] == up["time"] // 60


def test_of_several_client_tors_the_last_are_those_of_the_watched(tmp_path: Path) -> None:
    """Daemons that nobody watches share the first."""
    nodes = tuple(TorNode(name, tmp_path / name) for name in ("client0", "client1", "client2"))
    prepared = PreparedNetwork(tmp_path, (), (), nodes, (), (), 0)
    names = ["client-1", "client-2"]
    file = order_proxy(prepared, Distance(40), WatchedLines(str(tmp_path), 0.0, 60, names))
    watched = msgspec.json.decode(file.read_bytes(), type=DistanceOrder).watched
    assert watched is not None
    assert watched.names == names
    assert watched.tors == [str(node.directory / "pid") for node in nodes[1:]]


@pytest.mark.parametrize("distance", [Distance(0), Distance(40)], ids=["no distance", "containers"])
def test_lines_are_watched_where_a_proxy_can(distance: Distance, tmp_path: Path) -> None:
    backend = "containers" if distance.ms else "processes"
    with pytest.raises(UsageError, match="give --distance, as 40, and leave --backend away"):
        testnet.up(tmp_path / "net", 2, 1, "tor", distance=distance, backend=backend, observe_links="all")
    assert not (tmp_path / "net").exists()
