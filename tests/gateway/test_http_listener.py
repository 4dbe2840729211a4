"""Listeners for HTTP on real sockets: TLS with certificates of clients, Unix sockets, and what is missing."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from http_world import HttpCaller
from listening import client_context, secured, tls
from made_certificates import Certificates
from memory_gateway import running

from hushcast_gateway.clients.listeners import Listeners
from hushcast_gateway.clients.users import GatewayUsers
from hushcast_gateway.counters import GATEWAY_COUNTERS
from hushcast_gateway.passwords import Passwords
from hushcast_gateway.sections.access_sections import UserSection
from hushcast_gateway.sections.listen_section import ListenSection
from hushcast_gateway.settings import GatewaySettings
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import system_environment

USERS = {
    "sensor": UserSection(certificate="sensor", publish=("s/#",)),
    "owner": UserSection(uid=(os.getuid(),), publish=("o/#",)),
}


@asynccontextmanager
async def listening(place: ListenSection) -> AsyncIterator[int]:
    """Listen at a place for the block; yield the port."""
    env = system_environment()
    users = GatewayUsers(GatewaySettings(users=USERS), Passwords(env.compute, env.randomness))
    with trio.fail_after(20):
        async with running(authenticate=users.authenticate) as gateway, trio.open_nursery() as nursery:
            counters = Counters(GATEWAY_COUNTERS)
            listeners = Listeners([place], None, gateway.server.serve, counters, env)
            (listener,) = await nursery.start(listeners.run)
            name = listener.socket.getsockname()
            yield 0 if isinstance(name, str) else name[1]
            while counters["http_requests"] < 2:  # noqa: ASYNC110 - counted once it was answered
                await trio.sleep(0.01)
            assert counters["http_refused"] == 1
            nursery.cancel_scope.cancel()


async def test_over_tls_a_certificate_is_a_user(certificates: Certificates) -> None:
    place = tls(certificates, "https", client_ca=certificates.path("ca.pem"))
    async with listening(place) as port:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        async with secured(stream, client_context(certificates, "sensor")) as encrypted:
            caller = HttpCaller(encrypted)
            assert (await caller.ask("POST", "/s/a", b"x")).status == 200
            assert (await caller.ask("POST", "/o/a", b"x")).status == 401


async def test_at_a_unix_socket_the_machine_s_user_is_one(tmp_path: Path) -> None:
    path = tmp_path / "http.sock"
    place = ListenSection(kind="http", path=str(path))
    async with listening(place), await trio.open_unix_socket(path) as stream:
        caller = HttpCaller(stream)
        assert (await caller.ask("POST", "/o/a", b"x", Host="any")).status == 200
        assert (await caller.ask("POST", "/s/a", b"x", Host="any")).status == 401


async def test_without_the_extra_it_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [one for one in sys.modules if one.startswith(("hushcast_gateway.http.http_", "h11"))]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "h11", None)
    env = system_environment()
    listeners = Listeners([ListenSection(kind="http", port=1)], None, print, Counters({}), env)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="kind http and https need an extra"):
        await listeners.run()
