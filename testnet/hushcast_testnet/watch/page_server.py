"""The server of the page: loopback only, a handful of files, and one stream of events."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import trio

from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.change_signal import ChangeSignal
from hushcast_runtime.extras import how_to_get
from hushcast_runtime.storage.state_lock import holder
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.connection_slots import ConnectionSlots
from hushcast_runtime.transports.streams import LOOPBACK, listen_on_loopback, port_of
from hushcast_testnet.inventory import Testnet, away, load
from hushcast_testnet.progress import now_and_then
from hushcast_testnet.testnet import status_of
from hushcast_testnet.watch.daemon_states import DaemonStates, overall
from hushcast_testnet.watch.follower import Follower
from hushcast_testnet.watch.pictures import picture_of

try:
    import h11
except ImportError:
    raise UsageError(f"this needs h11: {how_to_get('watch')}") from None

EVERY = 1.0  # seconds between events
MAX_VIEWERS = 32  # streams of events at once: one for each window; one more takes another's place
MAX_ASKING = 32  # connections that ask for something: a browser opens six; one more takes another's place
REQUEST_WITHIN = 20.0  # seconds for a request's head
_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/drawing.js": ("drawing.js", "text/javascript; charset=utf-8"),
    "/chart.js": ("chart.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
# Nothing from elsewhere, nothing inline: the page could not reach the network if it wanted to.
_HEADERS = [
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "default-src 'self'; base-uri 'none'; frame-ancestors 'none'"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("Connection", "close"),
]


async def serve(
    directory: Path, port: int, ready: Callable[[str], None], progress: Callable[[str], None]
) -> None:
    """Serve the page of a running testnet until cancelled; `ready` hears its address.

    `progress` hears how much was read of what is there, if that takes long. Raises `UsageError` if there is
    no testnet, `TransportError` if the port is taken.
    """
    load(directory)
    listener = await listen_on_loopback(port)
    watch = _Watch(directory, port_of(listener))

    async def handle(stream: trio.SocketStream) -> None:
        async with stream:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await watch.answer(stream)

    ready(f"http://{LOOPBACK}:{port_of(listener)}/")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch.follow, now_and_then(progress))
        await trio.serve_listeners(handle, [listener])


class _Watch:
    """One testnet being watched, by however many viewers."""

    def __init__(self, directory: Path, port: int) -> None:
        self._directory = directory
        self._hosts = {f"{LOOPBACK}:{port}".encode(), f"localhost:{port}".encode()}
        self._picture = picture_of(load(directory).carrier)
        self._follower = Follower(directory / "traces")
        self._daemons = DaemonStates()
        self._common: dict[str, Any] = {}
        self._changed = ChangeSignal()
        self._asking = ConnectionSlots(MAX_ASKING)
        self._watching = ConnectionSlots(MAX_VIEWERS)

    async def follow(self, progress: Callable[[str], None]) -> None:
        """Look at traces and daemons again and again."""
        lines = 0
        while count := self._read():  # what was written before anybody watched
            lines += count
            progress(f"reading the traces: {lines:,} lines")
            await trio.lowlevel.checkpoint()
        self._picture.moves()
        async with trio.open_nursery() as nursery:
            while True:
                self._read()
                testnet = load(self._directory)
                for member in testnet.nodes:
                    if member.name not in self._daemons:
                        nursery.start_soon(self._daemons.ask, member)
                await trio.lowlevel.checkpoint()  # whoever is asked for the first time is under way then
                self._common = self._look(testnet)
                self._changed.tell()
                await trio.sleep(EVERY)

    def _read(self) -> int:
        count = 0
        for name, record in self._follower.new():
            with suppress(KeyError, ValueError):  # a line without what its kind has
                self._picture.take(name, record)
            count += 1
        return count

    def _look(self, testnet: Testnet) -> dict[str, Any]:
        said = self._daemons.said
        status = status_of(self._directory, said)
        load_of = self._picture.load()
        missing = away(testnet)
        for node in status["nodes"]:
            node["kind"], node["state"] = self._daemons.state(node["name"], node["pid"])
            node["sent"], node["probes_sent"] = load_of.get(node["name"], (0, 0))
            node |= {name: said.get(node["name"], {}).get(name, 0) for name in ("links", "leases")}
        kind, words = overall([node["kind"] for node in status["nodes"]], missing)
        return {
            **status,
            "serving": [
                {
                    "name": member.name,
                    "kind": "gone" if member.name in missing else "ready",
                    "state": "not running" if member.name in missing else "running",
                    "pid": holder(Path(member.state)),
                    "passed": load_of.get(member.name, (0, 0)),
                }
                for member in testnet.members
                if not member.is_node and member.role != "directory"
            ],
            "began": testnet.began,
            "kind": kind,
            "state": words,
            "subscriptions": self._picture.subscriptions(),
            "moves": self._picture.moves(),
            "figures": self._picture.figures(),
            "history": self._picture.history(time.time() - testnet.began),
        }

    async def answer(self, stream: trio.SocketStream) -> None:
        """Answer one request; a connection carries no other."""
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=16 * 1024)
        try:
            with self._asking.place(REQUEST_WITHIN):
                request = await _request(connection, stream)
        except (h11.RemoteProtocolError, TransportError):
            return
        if request is None:
            return
        target = urlsplit(request.target.decode("ascii", "replace"))
        # Against DNS rebinding: a page of another site, whose name resolves here, must not read the answer.
        if dict(request.headers).get(b"host") not in self._hosts:
            await _send(connection, stream, 421, "text/plain", b"this page has another name\n")
        elif request.method != b"GET":
            await _send(connection, stream, 405, "text/plain", b"there is nothing to change here\n")
        elif target.path in _FILES:
            name, kind = _FILES[target.path]
            page = resources.files(__package__) / "page" / name
            await _send(connection, stream, 200, kind, page.read_bytes())
        elif target.path == "/events":
            with suppress(TransportError), self._watching.place():
                await self._tell(connection, stream, parse_qs(target.query))
        else:
            await _send(connection, stream, 404, "text/plain", b"there is nothing here\n")

    async def _tell(
        self, connection: h11.Connection, stream: trio.SocketStream, asked: dict[str, list[str]]
    ) -> None:
        mailbox, message, probes = (
            asked.get(name, [""])[0] for name in ("subscription", "message", "probes")
        )
        await stream.send_all(_head(connection, 200, "text/event-stream"))
        while True:
            if self._common:
                daemons = [node["name"] for node in self._common["nodes"]]
                shown = mailbox or self._picture.subscription_of(message)
                tree = self._picture.tree_drawing(shown, daemons, message)
                chosen = {
                    "messages": self._picture.messages(probes == "yes"),
                    "shown": shown,
                    "tree": tree and tree.as_dict(),
                    "way": self._picture.way(message),
                }
                event = json.dumps(self._common | chosen)
                await stream.send_all(connection.send(h11.Data(f"data: {event}\n\n".encode())) or b"")
            await self._changed.wait()


async def _request(connection: h11.Connection, stream: trio.SocketStream) -> h11.Request | None:
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await stream.receive_some(16 * 1024))
        elif isinstance(event, h11.Request):
            return event
        else:
            return None


def _head(connection: h11.Connection, status: int, kind: str) -> bytes:
    response = h11.Response(status_code=status, headers=[("Content-Type", kind), *_HEADERS])
    return connection.send(response) or b""


async def _send(
    connection: h11.Connection, stream: trio.SocketStream, status: int, kind: str, body: bytes
) -> None:
    head = _head(connection, status, kind)
    rest = (connection.send(h11.Data(body)) or b"") + (connection.send(h11.EndOfMessage()) or b"")
    await stream.send_all(head + rest)


def watch(directory: Path, port: int, ready: Callable[[str], None], progress: Callable[[str], None]) -> None:
    """Serve the page until interrupted."""
    trio.run(serve, directory.absolute(), port, ready, progress)
