"""Metrics and readiness: a daemon's counters and gauges in Prometheus' text form, on a socket of the machine.

Nothing here is by topic, peer or address, and nothing tells when the daemon started.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.counters import Counters
from hushcast_runtime.processes.readiness import Readiness
from hushcast_runtime.processes.steps import steps
from hushcast_runtime.storage.disk_use import DISK_GAUGES
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.connection_slots import ConnectionSlots
from hushcast_runtime.transports.endpoints import Endpoint
from hushcast_runtime.transports.local_sockets import listen_at
from hushcast_runtime.transports.streams import listen_on_loopback, serve_streams

if TYPE_CHECKING:
    from hushcast_runtime.processes.exposition import Readings

_STEPS = {
    "longest_step_seconds": "processor seconds of the longest step since the last scrape; 0: all below 0.01",
    "longest_collection_seconds": "processor seconds of the longest look for garbage since the last scrape",
}
_OF_ALL = {"build_info": "1; version, program and role are its labels", **DISK_GAUGES, **_STEPS}
"""Of every daemon, beside the gauges of its own."""

GAUGES = {
    "ready": "1 when the daemon is ready, else 0",
    "tor_connected": "1 while the control connection to tor is up, or a SOCKS port alone of use, else 0",
    "tor_bootstrap_percent": "how far tor has come, 0 to 100; a SOCKS port alone does not tell",
    "roster_relays": "relays in the newest roster",
    "roster_age_epochs": "epochs that have begun since the newest roster's; 0 or -1 when all is well",
    "links": "links to other relays that are open",
    "leases": "leases held for subscriptions of the network",
    "cover_waiting": "messages under cover without a receipt; only of a daemon that has it on",
    "cover_silent": "1 while a daemon under cover sends no letters or loses them; else 0",
    "authorities_reached": "of several directories: others that this one reached at its last attempts",
    **_OF_ALL,
}
"""Every gauge with its meaning; a daemon leaves out those that it has no value for."""

MAX_REQUEST = 8192  # bytes of a scraper's request
_REQUEST_WITHIN = 10.0  # seconds; a scraper on the same machine needs milliseconds
MAX_SCRAPERS = 8  # at once; one more takes the place of another


def readings(status: Mapping[str, Any]) -> dict[str, float]:
    """Return the gauges that a daemon's status (`hushcast status`) has values for."""
    found: dict[str, float] = {"ready": float(status["ready"])}
    if tor := status.get("tor"):
        found["tor_connected"] = float(tor["connected"])
        if tor["percent"] is not None:
            found["tor_bootstrap_percent"] = float(tor["percent"])
    if roster := status.get("roster"):
        found["roster_relays"] = float(roster["relays"])
        found["roster_age_epochs"] = float(status["epoch"] - roster["epoch"])
    if cover := status.get("cover"):
        found["cover_waiting"] = float(cover["waiting"])
        found["cover_silent"] = float(cover["problem"] is not None)
    counted = ("links", "leases", "authorities_reached")
    return found | {name: float(status[name]) for name in counted if name in status}


class MetricsServer:
    """Answers `GET /metrics` with a daemon's counters and gauges as they stand.

    `GET /readyz` is answered with 200 where it is ready, else 503.
    """

    def __init__(
        self,
        counters: Counters | None,
        readings: Readings,
        readiness: Callable[[], Readiness],
        build: Mapping[str, str],
        gauges: Mapping[str, str] = GAUGES,
    ) -> None:
        """`gauges` are those that `readings` may give, with their meanings.

        `build` are the labels of `build_info`.
        """
        from hushcast_runtime.processes.exposition import (
            Exposition,  # the library takes long to load: where it is used
        )

        def all_readings() -> Mapping[str, float]:
            return {**readings(), **dict(zip(_STEPS, steps.take_longest(), strict=True))}

        self._exposition = Exposition(counters, all_readings, {**gauges, **_OF_ALL}, build)
        self._readiness = readiness
        self._scrapers = ConnectionSlots(MAX_SCRAPERS)
        self._names: frozenset[bytes] | None = None  # at a Unix socket, which no browser reaches, any will do

    async def run(
        self,
        endpoint: Endpoint,
        group: str | None,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve at `endpoint` until cancelled, for `group`, too, at a Unix socket; raises `UsageError`."""
        if endpoint.path:
            listener = listen_at(Path(endpoint.path), group, "the metrics socket")
        else:
            try:
                listener = await listen_on_loopback(endpoint.port, endpoint.host)
            except TransportError as error:
                raise UsageError(f"metrics: {error}") from None
            self._names = frozenset(
                f"{name}:{endpoint.port}".encode() for name in (endpoint.host, "localhost")
            )
        task_status.started()
        try:
            await serve_streams(listener, self._serve)
        finally:
            if endpoint.path:
                Path(endpoint.path).unlink(missing_ok=True)

    async def _serve(self, stream: trio.abc.Stream) -> None:
        # Every user of the machine can connect to a loopback port, and stay silent.
        gone = suppress(TransportError, trio.BrokenResourceError, trio.ClosedResourceError)
        with gone, self._scrapers.place(_REQUEST_WITHIN):
            await stream.send_all(self._answer(await _request(stream)))

    def _answer(self, request: bytes) -> bytes:
        words = request.partition(b"\r\n")[0].split(b" ")
        if len(words) != 3 or words[0] != b"GET":
            return _response("400 Bad Request", b"GET /metrics and GET /readyz are all there is\n")
        # Against DNS rebinding: a page of another site, whose name resolves here, must not read the answer.
        if self._names is not None and _host(request) not in self._names:
            return _response("421 Misdirected Request", b"these metrics have another name\n")
        path = words[1].partition(b"?")[0]
        if path == b"/readyz":
            readiness = self._readiness()
            status = "200 OK" if readiness.ready else "503 Service Unavailable"
            return _response(status, f"{readiness.doing}\n".encode())
        if path != b"/metrics":
            return _response("404 Not Found", b"metrics are at /metrics, readiness is at /readyz\n")
        return _response("200 OK", self._exposition.text(), self._exposition.CONTENT_TYPE)


async def _request(stream: trio.abc.Stream) -> bytes:
    """Return the head of an HTTP request, or as much of it as there was or may be."""
    head = b""
    while b"\r\n\r\n" not in head and len(head) < MAX_REQUEST:
        part = await stream.receive_some(MAX_REQUEST - len(head))
        if not part:
            break
        head += part
    return head


def _host(request: bytes) -> bytes | None:
    """Return what the one `Host` line of a request's head names, `None` if there is none or more of them."""
    lines = (line.partition(b":") for line in request.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:])
    hosts = [value.strip().lower() for name, _, value in lines if name.strip().lower() == b"host"]
    return hosts[0] if len(hosts) == 1 else None


def _response(status: str, body: bytes, content: str = "text/plain; charset=utf-8") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {content}"]
    lines += [f"Content-Length: {len(body)}", "Connection: close"]
    return "\r\n".join([*lines, "", ""]).encode() + body
