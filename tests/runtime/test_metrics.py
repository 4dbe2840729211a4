"""Metrics are the declared counters and gauges, read by any Prometheus parser, and nothing besides."""

from __future__ import annotations

import os
import socketserver
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
from prometheus_client.parser import text_string_to_metric_families

from hushcast_directory.server.counters import DIRECTORY_COUNTERS
from hushcast_node.counters import COUNTERS
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.counters import Counters
from hushcast_runtime.processes.exposition import Readings
from hushcast_runtime.processes.metrics import (
    GAUGES,
    MAX_REQUEST,
    MAX_SCRAPERS,
    MetricsServer,
    readings,
)
from hushcast_runtime.processes.readiness import Readiness
from hushcast_runtime.storage.disk_use import disk_readings
from hushcast_runtime.transports.endpoints import Endpoint

STATUS = {
    "ready": True,
    "tor": {"percent": 100, "summary": "Done", "connected": True},
    "epoch": 12,
    "roster": {"epoch": 13, "relays": 7},
    "links": 6,
    "leases": 3,
    "authorities_reached": 4,
    "cover": {"waiting": 2, "problem": None},
    "address": "not to be told",
    "subscriptions": 2,
}
BUILD = {"version": "1.2.3", "program": "node", "role": "relay"}


def served(counters: Counters | None, readings: Readings, *, ready: bool = True) -> MetricsServer:
    return MetricsServer(counters, readings, lambda: Readiness(ready, "what it does"), BUILD)


def test_how_far_a_tor_is_that_does_not_tell_is_left_out() -> None:
    found = readings(STATUS | {"tor": {"percent": None, "summary": "Done", "connected": True}})
    assert found["tor_connected"] == 1
    assert "tor_bootstrap_percent" not in found


@pytest.fixture
async def socket(tmp_path: Path) -> AsyncIterator[Path]:
    counters = Counters(COUNTERS)
    counters.add("messages_received", 41)
    path = tmp_path / "metrics.sock"
    async with trio.open_nursery() as nursery:
        server = served(counters, lambda: {**readings(STATUS), **disk_readings(tmp_path)})
        await nursery.start(server.run, Endpoint(path=str(path)), None)
        yield path
        nursery.cancel_scope.cancel()
    assert not path.exists()


async def asked(socket: Path, *parts: bytes) -> tuple[bytes, bytes]:
    """Send a request in parts; return the head and the body of the answer."""
    async with await trio.open_unix_socket(socket) as stream:
        for part in parts:
            await stream.send_all(part)
            await trio.lowlevel.checkpoint()
        with trio.fail_after(10):
            answer = b"".join([bytes(part) async for part in stream])
    head, _, body = answer.partition(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}".encode() in head
    return head, body


async def test_what_is_told_is_what_is_declared(socket: Path) -> None:
    head, body = await asked(socket, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    samples = {
        sample.name: (sample.labels, sample.value)
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }
    counters = {f"hushcast_{name}_total" for name in COUNTERS}
    assert samples.keys() == counters | {f"hushcast_{name}" for name in GAUGES}
    assert samples.pop("hushcast_build_info") == (BUILD, 1.0)
    assert all(labels == {} for labels, _ in samples.values())
    assert samples["hushcast_messages_received_total"][1] == 41
    assert samples["hushcast_roster_age_epochs"][1] == -1
    assert "not to be told" not in body.decode()


async def test_nothing_tells_when_the_daemon_started(socket: Path) -> None:
    _, body = await asked(socket, b"GET /metrics HTTP/1.1\r\n\r\n")
    assert b"_created" not in body
    assert b"process_" not in body


def test_a_daemon_that_starts_has_few_values() -> None:
    assert readings({"ready": False, "tor": None}) == {"ready": 0.0}


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /metrics?name[]=x HTTP/1.0\r\n\r\n", b"200"),
        (b"GET /readyz?verbose HTTP/1.0\r\n\r\n", b"200"),
        (b"GET / HTTP/1.1\r\n\r\n", b"404"),
        (b"GET /readyz/ HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", b"400"),
        (b"\r\n\r\n", b"400"),
        (b"x" * MAX_REQUEST, b"400"),
    ],
)
async def test_other_requests(socket: Path, request_: bytes, status: bytes) -> None:
    head, _ = await asked(socket, request_)
    assert head.split(b" ")[1] == status


@pytest.mark.parametrize(("ready", "status"), [(True, b"200 OK"), (False, b"503 Service Unavailable")])
async def test_readiness_has_a_path_of_its_own(tmp_path: Path, ready: bool, status: bytes) -> None:
    path = tmp_path / "metrics.sock"
    async with trio.open_nursery() as nursery:
        await nursery.start(served(None, dict, ready=ready).run, Endpoint(path=str(path)), None)
        head, body = await asked(path, b"GET /readyz HTTP/1.1\r\n\r\n")
        nursery.cancel_scope.cancel()
    assert head.startswith(b"HTTP/1.1 " + status + b"\r\n")
    assert body == b"what it does\n"


def test_the_disk_of_a_state_is_measured_through_its_folders(tmp_path: Path) -> None:
    before = disk_readings(tmp_path)
    (tmp_path / "replaced").mkdir()
    (tmp_path / "replaced" / "messages.sqlite").write_bytes(os.urandom(1 << 20))
    (tmp_path / "loop").symlink_to(tmp_path)
    after = disk_readings(tmp_path)
    assert before["state_bytes"] == 0
    assert 1 << 20 <= after["state_bytes"] < 1.1 * (1 << 20)
    assert after["disk_free_bytes"] > 0


async def test_a_request_may_come_in_pieces(socket: Path) -> None:
    whole = b"GET /metrics HTTP/1.1\r\n\r\n"
    parts = [bytes([byte]) for byte in whole]
    assert (await asked(socket, *parts))[0].startswith(b"HTTP/1.1 200")


async def test_silent_scrapers_keep_nobody_waiting(socket: Path) -> None:
    silent = [await trio.open_unix_socket(socket) for _ in range(3 * MAX_SCRAPERS)]
    for _ in range(3):
        assert (await asked(socket, b"GET /metrics HTTP/1.1\r\n\r\n"))[0].startswith(b"HTTP/1.1 200")
    for stream in silent:
        await stream.aclose()


async def test_a_directory_counts_what_it_declares(tmp_path: Path) -> None:
    counters = Counters(DIRECTORY_COUNTERS)
    counters.add("rosters_asked_for", 3)
    path = tmp_path / "metrics.sock"
    async with trio.open_nursery() as nursery:
        await nursery.start(served(counters, dict).run, Endpoint(path=str(path)), None)
        _, body = await asked(path, b"GET /metrics HTTP/1.1\r\n\r\n")
        nursery.cancel_scope.cancel()
    samples = {
        sample.name: sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }
    counts = {f"hushcast_{name}_total" for name in DIRECTORY_COUNTERS}
    of_all = {"build_info", "longest_step_seconds", "longest_collection_seconds"}
    assert samples.keys() == counts | {f"hushcast_{name}" for name in of_all}
    assert samples["hushcast_rosters_asked_for_total"] == 3


async def test_the_socket_is_its_owners(socket: Path) -> None:
    assert stat.S_IMODE(socket.stat().st_mode) == 0o600
    assert socket.stat().st_uid == os.geteuid()


async def test_loopback(tmp_path: Path) -> None:
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listeners[0].socket.getsockname()[1]
        server = served(None, lambda: {"ready": 1.0})
        with pytest.raises(UsageError, match="metrics"):
            await server.run(Endpoint(host="127.0.0.1", port=port), None)
        await listeners[0].aclose()
        await nursery.start(server.run, Endpoint(host="127.0.0.1", port=port), None)
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            await stream.send_all(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port)
            answer = b"".join([bytes(part) async for part in stream])
        assert b"\nhushcast_ready 1.0\n" in answer
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"Host: 127.0.0.1:PORT\r\n", b"200"),
        (b"host:\tLOCALHOST:PORT \r\nAccept: */*\r\n", b"200"),
        (b"Host: pages.example:PORT\r\n", b"421"),
        (b"Host: pages.example\r\n", b"421"),
        (b"Host: 127.0.0.1\r\n", b"421"),
        (b"Host: 127.0.0.1:PORT.pages.example\r\n", b"421"),
        (b"Host: 127.0.0.1:PORT\r\nHost: pages.example:PORT\r\n", b"421"),
        (b"X-Host: 127.0.0.1:PORT\r\n", b"421"),
        (b"Host\r\n", b"421"),
        (b"", b"421"),
    ],
)
async def test_a_page_of_another_name_reads_nothing_at_a_port(head: bytes, status: bytes) -> None:
    """Its name may lead to 127.0.0.1 by now (DNS rebinding); what the browser calls us stays its name."""
    async with trio.open_nursery() as nursery:
        with socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as free:
            port = free.server_address[1]
        server = served(None, lambda: {"ready": 1.0})
        await nursery.start(server.run, Endpoint(host="127.0.0.1", port=port), None)
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            request = b"GET /metrics HTTP/1.1\r\n" + head.replace(b"PORT", b"%d" % port) + b"\r\n"
            await stream.send_all(request)
            answer = b"".join([bytes(part) async for part in stream])
        assert answer.split(b" ")[1] == status
        assert (b"hushcast_ready" in answer) == (status == b"200")
        nursery.cancel_scope.cancel()
