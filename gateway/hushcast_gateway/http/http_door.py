"""The door for HTTP: requests of one listener, each judged, routed, and served as a client of the broker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import trio

from hushcast_gateway.http.browser_origins import hides_site, is_here, is_ours
from hushcast_gateway.http.http_connection import HttpConnection
from hushcast_gateway.http.http_stream import HttpStream
from hushcast_gateway.peer import ClientPeer
from hushcast_gateway.sections.listen_section import ListenSection
from hushcast_protocol.http.exchanges import (
    HttpAnswer,
    HttpExchange,
    PublishExchange,
    StreamExchange,
)
from hushcast_protocol.http.http_request import HttpRequest
from hushcast_protocol.http.openapi import description
from hushcast_protocol.http.refusals import HttpRefusal
from hushcast_protocol.http.routes import publishes_by_get, route
from hushcast_protocol.http.subscription_request import StreamForm, SubscriptionRequest
from hushcast_protocol.http.unified_push import MatrixNotification, is_push_topic
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.connection_slots import ConnectionSlots

REQUEST_WITHIN = 15.0  # seconds for the headers of a request, the first and each that follows
MAX_ASKING = 256  # connections without a whole request, of all doors; one more takes the place of another

Serve = Callable[[trio.abc.Stream, ClientPeer], Awaitable[None]]

_ELSEWHERE = partial(
    HttpRefusal, 40302, "forbidden: a page of a site that `origins` of the listener does not name"
)
_BY_POST = partial(
    HttpRefusal, 40303, "forbidden: a browser that does not say which page asks may publish by POST alone"
)
_NO_SOCKET = partial(HttpRefusal, 40016, "invalid request: this path is for WebSockets, version 13")


class HttpDoor:
    """Speaks HTTP with whoever connects."""

    def __init__(self, serve: Serve, env: Environment, counters: Counters) -> None:
        """`serve` speaks MQTT with one client, until that is gone."""
        self._serve = serve
        self._env = env
        self._counters = counters
        self._description = description()
        self._asking = ConnectionSlots(MAX_ASKING, env.below)

    async def serve(self, transport: trio.abc.Stream, place: ListenSection, peer: ClientPeer) -> None:
        """Serve one connection until it ends."""
        connection = HttpConnection(transport)
        with suppress(TransportError, trio.BrokenResourceError, trio.ClosedResourceError):
            is_open = True
            while is_open:
                try:
                    with self._asking.place(REQUEST_WITHIN):
                        request = await connection.next_request()
                    if request is None:
                        return
                    await self._answer(connection, request, place, peer)
                except HttpRefusal as refusal:
                    await connection.answer(refusal.status, refusal.body, "application/json")
                finally:
                    if connection.status:
                        self._counters.add("http_requests")
                    if connection.status >= 400:
                        self._counters.add("http_refused")
                is_open = connection.next()

    async def _answer(
        self, connection: HttpConnection, request: HttpRequest, place: ListenSection, peer: ClientPeer
    ) -> None:
        connection.beside += _judged(request, place)
        if request.method == "OPTIONS":
            await connection.answer(204, b"", "text/plain")
            return
        asked = route(request, int(self._env.now()), self._description)
        if isinstance(asked, HttpAnswer):
            await connection.answer(asked.status, asked.body, asked.content_type)
            return
        credentials = request.credentials()
        exchange: HttpExchange
        if not isinstance(asked, SubscriptionRequest):
            # What is retained stays: who has made up a thousand names would have all the user's room.
            is_push = isinstance(asked, MatrixNotification) or (
                is_push_topic(asked.topic) and not asked.retain
            )
            if is_push and credentials is None:
                peer = replace(peer, guest=place.push_user)
            exchange = PublishExchange(asked, credentials, self._env.randomness)
        else:
            if asked.form is StreamForm.WS and not connection.asks_for_websocket():
                raise _NO_SOCKET()
            exchange = StreamExchange(asked, credentials, self._env.randomness)
        stream = HttpStream(connection, exchange, self._env.now)
        await self._serve(stream, peer)
        await stream.finish()


def _judged(request: HttpRequest, place: ListenSection) -> list[tuple[str, str]]:
    """Return the headers that a browser needs of an answer; raises `HttpRefusal` for pages of other sites.

    A page may ask by an image or a link, and then no `Origin` says so: browsers tell by `Sec-Fetch-Site`, and
    one that has been given this machine's address for a name of its own shows by `Host`.
    """
    if place.path is not None:
        return []
    origin, host = (
        [value.strip() for each, value in request.headers if each == name] for name in ("origin", "host")
    )
    origins = frozenset(place.origins)
    if not is_ours(origin, host, origins, place.is_secure):
        raise _ELSEWHERE()
    if origin:
        site = origin[0].decode("latin-1").lower()
        return _for_page(site) if site in origins else []
    site = request.header("sec-fetch-site")
    if site in ("cross-site", "same-site"):
        raise _ELSEWHERE()
    if publishes_by_get(request) and hides_site(request.header("user-agent"), site):
        raise _BY_POST()
    named = {site.partition("://")[2] for site in origins}
    places = [value.decode("latin-1").lower() for value in host]
    if not place.is_secure and any(not is_here(one) and one not in named for one in places):
        raise _ELSEWHERE()
    return []


def _for_page(site: str) -> list[tuple[str, str]]:
    """Return what lets a page of a site read an answer, and ask with what a client of ntfy sends."""
    return [
        ("Access-Control-Allow-Origin", site),
        ("Access-Control-Allow-Methods", "GET, POST, PUT"),
        ("Access-Control-Allow-Headers", "authorization, *"),
        ("Access-Control-Max-Age", "600"),
        ("Vary", "Origin"),
    ]
