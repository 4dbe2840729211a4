"""HTTP in two houses: what one publishes the other streams, with title and id, and MQTT reads both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
from houses import houses, listening, quick, until
from http_world import PLACE, HttpCaller, HttpResponse
from memory_gateway import Gateway
from traced_life import check, tracing
from trio.testing import memory_stream_pair

from hushcast_gateway.counters import GATEWAY_COUNTERS
from hushcast_gateway.http.http_door import HttpDoor
from hushcast_gateway.peer import ClientPeer
from hushcast_runtime.counters import Counters


async def dial(gateway: Gateway, nursery: trio.Nursery) -> HttpCaller:
    ours, theirs = memory_stream_pair()
    door = HttpDoor(gateway.server.serve, gateway.state.env, Counters(GATEWAY_COUNTERS))
    nursery.start_soon(door.serve, theirs, PLACE, ClientPeer(local=True))
    await trio.lowlevel.checkpoint()
    return HttpCaller(ours)


async def ask(gateway: Gateway, nursery: trio.Nursery, *given: Any, **more: Any) -> HttpResponse:
    return await (await dial(gateway, nursery)).ask(*given, **more)


async def test_from_one_house_to_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)
    maps = {"alerts/#": "home"}
    async with houses(tmp_path, maps) as (_, two, first, second), trio.open_nursery() as nursery:
        reader = await listening(two, second, "hush/home/#")
        stream = await dial(second, nursery)
        await stream.stream_of("/hush/home/alerts/door/json")
        assert (await stream.message())["event"] == "open"
        told = await ask(first, nursery, "POST", "/alerts/door", b"open", title="Door", tags="door")
        assert told.status == 200
        heard = await stream.message()
        assert heard | {"time": 0} == told.json | {"time": 0, "topic": "hush/home/alerts/door"}
        packet = await reader.message()
        assert (packet.topic, packet.payload) == ("hush/home/alerts/door", b"open")
        nursery.cancel_scope.cancel()


async def test_a_message_alone_is_a_payload_for_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch)
    async with houses(tmp_path) as (one, _, first, _), trio.open_nursery() as nursery:
        assert (await ask(first, nursery, "POST", "/hush/open/news", b"as it is")).status == 200
        await until(lambda: len(one.daemon.published) == 1)
        assert one.daemon.published[0][1] == b"as it is"
        nursery.cancel_scope.cancel()


async def test_without_a_network_its_topics_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch)
    async with houses(tmp_path) as (_, _, first, _), trio.open_nursery() as nursery:
        answer = await ask(first, nursery, "POST", "/hush/elsewhere/x", b"x")
        assert answer.json["code"] == 40009
        assert (await ask(first, nursery, "GET", "/hush/elsewhere/x/json")).json["code"] == 40009
        nursery.cancel_scope.cancel()


async def test_a_publication_goes_the_way_of_mqtt_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions of the page, from where the server reads to where it writes."""
    quick(monkeypatch)
    async with houses(tmp_path) as (_, two, first, second), trio.open_nursery() as nursery:
        reader = await listening(two, second, "hush/home/#")
        with tracing() as traced:
            assert (await ask(first, nursery, "POST", "/hush/home/a", b"x")).status == 200
        assert (await reader.message()).payload == b"x"
        nursery.cancel_scope.cancel()
    check(traced)
    assert {"HttpStream.receive_some", "HttpStream.send_all"} <= {*traced.entered}
