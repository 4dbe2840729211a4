"""Who is refused leaves nothing behind: an exception that a module holds keeps the frames of all raises."""

from __future__ import annotations

import ast
import gc
import importlib
import os
import pkgutil
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import trio
import trio.testing
from core_examples import NETWORK

import hushcast_brokers
import hushcast_central
import hushcast_directory
import hushcast_gateway
import hushcast_local
import hushcast_located
import hushcast_node
import hushcast_overlay
import hushcast_protocol
import hushcast_runtime
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.wire import encode
from hushcast_protocol.http.http_request import HttpRequest
from hushcast_protocol.http.publication_request import PublicationRequest
from hushcast_protocol.http.refusals import HttpRefusal
from hushcast_protocol.http.routes import route
from hushcast_protocol.mqtt.reason_codes import PacketError
from hushcast_protocol.mqtt.wire.codec import Decoder
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME, Ping, decode_overlay
from hushcast_runtime.transports.channel import accept_channel

NOW = 1_000_000
PACKAGES = (
    hushcast_brokers,
    hushcast_central,
    hushcast_directory,
    hushcast_gateway,
    hushcast_local,
    hushcast_located,
    hushcast_node,
    hushcast_overlay,
    hushcast_protocol,
    hushcast_runtime,
)


class Target(str):
    """What a request asks for, of which a weak reference tells whether it is there still."""


class Body(bytearray):
    """A body of the same kind."""


def no_page() -> weakref.ref:
    request = HttpRequest("GET", Target("/a/b/c/d/e"), ())
    with pytest.raises(HttpRefusal):
        route(request, NOW, b"")
    return weakref.ref(request.target)


def no_method() -> weakref.ref:
    request = HttpRequest("BREW", Target("/a"), ())
    with pytest.raises(HttpRefusal):
        route(request, NOW, b"")
    return weakref.ref(request.target)


def no_credentials() -> weakref.ref:
    request = HttpRequest("GET", Target("/a/json"), (("authorization", b"Basic x" * 1000),))
    with pytest.raises(HttpRefusal):
        request.credentials()
    return weakref.ref(request.target)


def no_json() -> weakref.ref:
    publication = route(HttpRequest("POST", "/", (("title", b"x"),)), NOW, b"")
    assert isinstance(publication, PublicationRequest)
    body = Body(b"{" * 64_000)
    with pytest.raises(HttpRefusal):
        publication.with_body(body, bytes)
    return weakref.ref(body)


@pytest.mark.parametrize("refused", [no_page, no_method, no_credentials, no_json])
def test_a_refused_request_is_not_kept(refused) -> None:
    kept = [refused() for _ in range(5)]
    gc.collect()
    assert [one() for one in kept] == [None] * 5


def test_no_module_holds_an_exception() -> None:
    """With the frames goes what was in them: a stranger's request, its body and its connection."""
    held = []
    for package in PACKAGES:
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if module.name.endswith("__main__"):
                continue
            values = vars(importlib.import_module(module.name)).items()
            held += [f"{module.name}.{name}" for name, value in values if isinstance(value, BaseException)]
    assert held == []


def held_in(tree: ast.AST, caught: frozenset[str] = frozenset()) -> list[int]:
    """The lines at which an exception is kept: by an object that caught it, or by a name that is raised."""
    lines = []
    for node in ast.iter_child_nodes(tree):
        names = caught
        kept: ast.expr | None = None
        if isinstance(node, ast.ExceptHandler) and node.name is not None:
            names |= {node.name}
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            kept = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            is_appended = node.func.attr == "append" and isinstance(node.func.value, ast.Attribute)
            kept = node.args[0] if is_appended else None
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Name) and node.exc.id not in caught:
            is_class = node.exc.id.lstrip("_")[0].isupper()
            lines += [] if is_class else [node.lineno]
        if isinstance(kept, ast.Name) and kept.id in caught:
            lines.append(node.lineno)
        lines += held_in(node, names)
    return lines


def test_nothing_keeps_an_exception_that_was_raised() -> None:
    """Whoever does, its exception, the frames of that and what they have are a circle: a copy is none."""
    held = {
        path.stem: lines
        for package in PACKAGES
        for path in Path(package.__path__[0]).rglob("*.py")
        if (lines := held_in(ast.parse(path.read_text())))
    }
    assert set(held) == {"exception_groups"}, held  # errors of nurseries, which nobody sends


@asynccontextmanager
async def no_garbage_collection() -> AsyncIterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("before", [0, 1])
async def test_a_refused_packet_is_not_kept(before: int) -> None:
    async with no_garbage_collection():
        decoder = Decoder(100_000, of_server=True)
        for _ in range(3):
            with suppress(PacketError):
                decoder.feed(b"\xd0\x00" * before + b"\xd0\x01" + bytes(64_000))
        assert decoder.error is not None
        kept = weakref.ref(decoder)
        del decoder
        assert kept() is None


@pytest.mark.parametrize("before", [0, 1])
async def test_a_refused_frame_is_not_kept(before: int) -> None:
    ours, kept = Seed(bytes(32)), []

    async def serve(stream: trio.abc.Stream) -> None:
        def decode(data: bytes) -> object:
            return decode_overlay(data)

        kept.append(weakref.ref(decode))
        link = Link.respond(NETWORK.id, ours, os.urandom, MAX_OVERLAY_FRAME)
        channel, _ = await accept_channel(stream, link, decode)
        for _ in range(before):
            assert await channel.receive() == [Ping()]
        for _ in range(3):
            with pytest.raises(PeerError):
                await channel.receive()
        await channel.aclose()

    async with no_garbage_collection():
        one, other = trio.testing.memory_stream_pair()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve, other)
            link = Link.initiate(NETWORK.id, ours.public(), os.urandom, MAX_OVERLAY_FRAME, None)
            await accept_channel(one, link, decode_overlay)
            link.send(*[encode(Ping())] * before, b"\xc1" * 1000)
            await one.send_all(link.data_to_send())
        assert kept[0]() is None
