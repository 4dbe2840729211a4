"""HTTP at a gateway: requests are clients like others, and what is said is what ntfy's clients expect."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from contextlib import suppress
from typing import Any

import h11
import pytest
import trio
from http_world import TOKEN, UNIX, http_gateway
from wsproto import ConnectionType, events
from wsproto.connection import Connection

from hushcast_gateway.http import http_connection, http_stream
from hushcast_gateway.sections.listen_section import ListenSection
from hushcast_protocol.http.routes import BY_GET
from hushcast_protocol.mqtt.wire.packets import Publish

OLD_BROWSER = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15"  # and so on

# What is published, and read


async def test_a_message_comes_to_all_streams() -> None:
    async with http_gateway() as gateway:
        streams = [await gateway.dial() for _ in range(3)]
        heads = [
            await stream.stream_of(f"/x/news/{form}")
            for stream, form in zip(streams, ("json", "sse", "raw"), strict=True)
        ]
        assert [dict(head.headers)[b"content-type"].split(b";")[0] for head in heads] == [
            b"application/x-ndjson",
            b"text/event-stream",
            b"text/plain",
        ]
        opened = await streams[0].message()
        assert (opened["event"], opened["topic"]) == ("open", "x/news")
        assert await streams[1].line() == b"event: open\n"
        assert (await streams[1].line()).startswith(b"data: ")
        assert await streams[1].line() == await streams[2].line() == b"\n"
        told = await gateway.ask(
            "POST", "/x/news", b"two\nlines", title="Title", priority="high", tags="a, b"
        )
        assert told.status == 200
        assert told.json == await streams[0].message()
        assert told.json | {"id": "", "time": 0} == {
            "id": "",
            "time": 0,
            "event": "message",
            "topic": "x/news",
            "message": "two\nlines",
            "title": "Title",
            "priority": 4,
            "tags": ["a", "b"],
        }
        assert await streams[1].line() == f"id: {told.json['id']}\n".encode()
        assert json.loads((await streams[1].line()).removeprefix(b"data: ")) == told.json
        assert await streams[2].line() == b"two lines\n"


async def test_mqtt_and_http_read_each_other() -> None:
    async with http_gateway() as gateway:
        client = await gateway.mqtt()
        await client.subscribe("x/#")
        told = await gateway.ask("PUT", "/x/a/b", "grüß".encode(), title="T", retain="1", md="yes")
        packet = await client.message()
        assert (packet.topic, packet.payload.decode(), packet.retain) == ("x/a/b", "grüß", False)
        assert packet.properties["content_type"] == "text/markdown"
        assert dict(packet.properties["user_property"]) == {"id": told.json["id"], "title": "T"}
        stream = await gateway.dial()
        await stream.stream_of("/x/+/b,x/c/json?since=all")
        assert (await stream.message())["topic"] == "x/+/b,x/c"
        assert await stream.message() == told.json | {"time": told.json["time"]}
        properties = {"user_property": [("title", "of MQTT"), ("priority", "9"), ("actions", "{")]}
        await client.send(Publish("x/c", b"\xff\x00", properties=properties))  # type: ignore[arg-type]
        event = await stream.message()
        assert (event["message"], event["encoding"]) == (b64encode(b"\xff\x00").decode(), "base64")
        assert event["title"] == "of MQTT"
        assert not {"priority", "actions"} & event.keys()


async def test_all_ways_to_say_a_message() -> None:
    async with http_gateway() as gateway:
        caller = await gateway.dial()
        posted = {"topic": "x/j", "message": "json", "title": "ü", "priority": 5, "tags": ["t"]}
        posted["actions"] = [{"action": "view", "label": "Open", "url": "https://example.org"}]
        told = (await caller.ask("POST", "/", json.dumps(posted).encode())).json
        assert {key: told[key] for key in posted} == posted
        told = (
            await caller.ask("POST", "/", b'{"topic": "x/j", "title": "t"}', "", title="no", tags="b")
        ).json
        assert (told["title"], told["tags"], told["message"]) == ("t", ["b"], "triggered")
        assert (await caller.ask("GET", "/x/j/send?m=by+GET&p=1&ta=a,b")).json["tags"] == ["a", "b"]
        assert (await caller.ask("POST", "/x/j")).json["message"] == "triggered"
        told = (await caller.ask("POST", "/x/j", b"file", attach="https://example.org/f.png")).json
        assert told["attachment"] == {"name": "f.png", "url": "https://example.org/f.png"}
        assert (await caller.ask("POST", "/x/j", b"", title="=?UTF-8?B?w7w=?=")).json["title"] == "ü"
        assert "priority" not in (await caller.ask("POST", "/x/j", b"", priority="u=1, i")).json


def timeless(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out when: a publisher may hear of it in the second after."""
    return [{key: value for key, value in one.items() if key != "time"} for one in found]


async def test_since() -> None:
    """Of what is kept; a stream goes on with what is fresh, and each comes once."""
    async with http_gateway() as gateway:
        caller = await gateway.dial()
        told = timeless([(await caller.ask("POST", "/kept/a", b"%d" % number)).json for number in range(200)])
        await caller.ask("POST", "/kept/a", b"not kept", cache="no")
        assert timeless((await caller.ask("GET", "/kept/a/json?poll=1")).events) == told
        assert (
            timeless((await caller.ask("GET", f"/kept/a/json?poll=1&since={told[197]['id']}")).events)
            == told[198:]
        )
        assert (
            timeless((await caller.ask("GET", "/kept/a/json?poll=1", last_event_id=told[198]["id"])).events)
            == told[199:]
        )
        assert timeless((await caller.ask("GET", "/kept/a/json?poll=1&since=none")).events) == []
        assert timeless((await caller.ask("GET", "/kept/+/json?poll=1&since=latest")).events) == told[-1:]
        assert timeless((await caller.ask("GET", "/kept/a/json?poll=1&since=10m")).events) == told
        assert timeless((await caller.ask("GET", "/kept/a/json?poll=1&since=9000001")).events) == []
        assert timeless((await caller.ask("GET", f"/kept/a/json?poll=1&since={'x' * 12}")).events) == told
        assert len((await caller.ask("GET", f"/kept/a/json?poll=1&id={told[3]['id']}&m=3")).events) == 1
        stream = await gateway.dial()
        await stream.stream_of(f"/kept/a/json?since={told[100]['id']}")
        (fresh,) = timeless([(await caller.ask("POST", "/kept/a", b"fresh")).json])
        got = [await stream.message() for _ in range(101)]
        assert got[0]["event"] == "open"
        assert timeless(got[1:]) == [*told[101:], fresh]


async def test_what_mqtt_publishes_has_one_id_where_it_is_kept() -> None:
    async with http_gateway() as gateway:
        client = await gateway.mqtt()
        streams = [await gateway.dial() for _ in range(2)]
        for stream in streams:
            await stream.stream_of("/kept/m/json")
            await stream.message()
        await client.send(Publish("kept/m", b"1"))
        first, second = [await stream.message() for stream in streams]
        assert first == second
        assert (await gateway.ask("GET", "/kept/m/json?poll=1")).events == [first]


async def test_a_retained_message_is_all_of_a_topic_without_a_history() -> None:
    async with http_gateway() as gateway:
        client = await gateway.mqtt()
        await client.send(Publish("x/r", b"1", retain=True), Publish("x/r", b"2"))
        await gateway.ask("POST", "/x/other")
        found = [(await gateway.ask("GET", "/x/r/json?poll=1")).events for _ in range(2)]
        assert [event["message"] for event in found[0]] == ["1"]
        assert found[0][0]["id"] == found[1][0]["id"]


async def test_a_websocket() -> None:
    async with http_gateway() as gateway:
        assert (await gateway.ask("GET", "/x/a/ws")).json["code"] == 40016
        caller = await gateway.dial()
        asked = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
        await caller.begin("GET", "/x/a/ws", {**asked, "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="})
        answer = await caller.event()
        assert answer.status_code == 101
        assert (b"sec-websocket-accept", b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") in list(answer.headers)
        machine = Connection(ConnectionType.CLIENT, trailing_data=caller.machine.trailing_data[0])

        async def next_event() -> events.Event | None:
            while True:
                for event in machine.events():
                    return event
                machine.receive_data(bytes(await caller.stream.receive_some()) or None)

        opened = await next_event()
        assert isinstance(opened, events.TextMessage)
        assert json.loads(opened.data)["event"] == "open"
        await caller.stream.send_all(machine.send(events.Ping(b"p")))
        assert isinstance(await next_event(), events.Pong)
        await gateway.ask("POST", "/x/a", b"hello")
        message = await next_event()
        assert isinstance(message, events.TextMessage)
        assert json.loads(message.data)["message"] == "hello"
        await caller.stream.send_all(machine.send(events.CloseConnection(1000)))
        assert isinstance(await next_event(), events.CloseConnection)


# Who may


@pytest.mark.parametrize(
    ("method", "target", "user", "status"),
    [
        ("POST", "/a/b", "alice:right", 200),
        ("POST", "/a/b", "alice:wrong", 401),
        ("POST", "/a/b", "nobody:right", 401),
        ("POST", "/b", "alice:right", 403),
        ("POST", "/a/b", "", 401),
        ("GET", "/a/b/json?poll=1", "alice:right", 200),
        ("GET", "/a/b/json", "alice:wrong", 401),
        ("GET", "/a/b,x/json", "alice:right", 403),
        ("GET", "/%23/json", "alice:right", 403),
        ("GET", "/a/%23/auth", "alice:right", 200),
        ("GET", "/a/b/auth", "", 401),
        ("GET", "/a/b/send", "", 401),
    ],
)
async def test_access_lists_are_those_of_mqtt(method: str, target: str, user: str, status: int) -> None:
    async with http_gateway() as gateway:
        answer = await gateway.ask(method, target, b"", user)
        assert answer.status == status
        if status == 401:
            assert answer.headers["www-authenticate"].startswith("Basic ")
        if status >= 400:
            assert answer.json["http"] == status


async def test_who_is_elsewhere_says_who_it_is() -> None:
    async with http_gateway(local=False) as gateway:
        assert (await gateway.ask("POST", "/x/a")).json["code"] == 40101
        assert (await gateway.ask("POST", "/a/b", b"", "alice:right")).status == 200
        known = urlsafe_b64encode(b"Basic " + b64encode(b"alice:right")).decode().rstrip("=")
        assert (await gateway.ask("GET", f"/a/b/json?poll=1&auth={known}")).status == 200
        for unreadable in ("Digest x", "Basic !", "Basic " + b64encode(b"alice").decode(), "Bearer"):
            assert (await gateway.ask("POST", "/a/b", authorization=unreadable)).status == 401


async def test_a_token_is_as_good_as_a_password() -> None:
    async with http_gateway(local=False) as gateway:
        bearer = {"authorization": f"Bearer {TOKEN}"}
        assert (await gateway.ask("POST", "/a/b", b"", "", **bearer)).status == 200
        assert (await gateway.ask("GET", "/a/b/json?poll=1", b"", f":{TOKEN}")).status == 200
        assert (await gateway.ask("POST", "/b", b"", "", **bearer)).status == 403
        for wrong in (TOKEN[:-1], "tk_", "right"):
            assert (await gateway.ask("POST", "/a/b", authorization=f"Bearer {wrong}")).status == 401


# UnifiedPush

TOPIC = "upAbCdEfGhIjKl"


async def test_whoever_knows_the_name_pushes() -> None:
    place = ListenSection(kind="http", port=8080, push_user="phone")
    async with http_gateway(place, local=False) as gateway:
        assert (await gateway.ask("GET", f"/{TOPIC}?up=1")).json == {"unifiedpush": {"version": 1}}
        phone = await gateway.mqtt("phone", b"right")
        await phone.subscribe("+")
        assert (await gateway.ask("POST", f"/{TOPIC}?up=1", b"\x00\xff")).status == 200
        assert (await phone.message()).payload == b"\x00\xff"
        for method, target in (("POST", "/up"), ("POST", "/other"), ("GET", f"/{TOPIC}/json")):
            assert (await gateway.ask(method, target)).status == 401
        posted = json.dumps({"topic": TOPIC}).encode()
        assert (await gateway.ask("POST", "/", posted)).status == 401


async def test_without_a_user_for_it_nobody_pushes() -> None:
    async with http_gateway(local=False) as gateway:
        assert (await gateway.ask("POST", f"/{TOPIC}?up=1", b"x")).status == 401


async def test_matrix() -> None:
    path = "/_matrix/push/v1/notify"
    place = ListenSection(kind="http", port=8080, push_user="phone")
    async with http_gateway(place, local=False) as gateway:
        assert (await gateway.ask("GET", path)).json == {"unifiedpush": {"gateway": "matrix"}}
        phone = await gateway.mqtt("phone", b"right")
        await phone.subscribe(TOPIC)

        def notice(pushkey: str) -> bytes:
            return json.dumps({"notification": {"devices": [{"pushkey": pushkey, "app_id": "a"}]}}).encode()

        key = f"http://127.0.0.1:8080/{TOPIC}?up=1"
        assert (await gateway.ask("POST", path, notice(key))).json == {"rejected": []}
        assert (await phone.message()).payload == notice(key)
        for other in (f"http://other/{TOPIC}", "http://127.0.0.1:8080/x", "http://[", "", "//%ff"):
            answer = await gateway.ask("POST", path, notice(other))
            assert (answer.status, answer.json) == (200, {"rejected": [other]})
        for wrong in (b"", b"[]", b'{"notification": {"devices": []}}', b"[" * 100_000):
            assert (await gateway.ask("POST", path, wrong)).json["code"] == 40019


# Browsers


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost"}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "named.example"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "https://named.example"}, 200),
        ({"origin": "http://127.0.0.1:8080"}, 200),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "none"}, 200),
    ],
)
async def test_pages_of_other_sites(headers: dict[str, str], status: int) -> None:
    place = ListenSection(kind="http", port=8080, origins=("https://named.example",))
    async with http_gateway(place) as gateway:
        host = headers.pop("host", None)
        given = {**headers, **({"Host": host} if host else {})}
        answer = await gateway.ask("POST", "/x/a", b"", "", **given)
        assert answer.status == status
        is_named = headers.get("origin") == "https://named.example"
        assert answer.headers.get("access-control-allow-origin") == (
            "https://named.example" if is_named else None
        )
        assert (await gateway.ask("OPTIONS", "/x/a", b"", "", **given)).status == (
            204 if status == 200 else 403
        )


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"user_agent": OLD_BROWSER}, 403),
        ({"user_agent": OLD_BROWSER, "referer": "http://127.0.0.1:8080/"}, 403),  # a page may leave it out
        ({"user_agent": OLD_BROWSER, "sec_fetch_site": "none"}, 200),  # typed by a person
        ({"user_agent": OLD_BROWSER, "origin": "https://named.example"}, 200),
        ({"user_agent": "curl/8.5.0"}, 200),
        ({}, 200),
    ],
)
async def test_a_browser_that_hides_whose_page_asks_does_not_publish_by_get(
    headers: dict[str, str], status: int
) -> None:
    place = ListenSection(kind="http", port=8080, origins=("https://named.example",))
    async with http_gateway(place) as gateway:
        for last in BY_GET:
            answer = await gateway.ask("GET", f"/x/a/{last}?message=open", **headers)
            assert answer.status == status
            assert status == 200 or "POST" in answer.json["error"]
        assert (await gateway.ask("POST", "/x/a", b"open", **headers)).status == 200
        assert (await gateway.ask("GET", "/x/a/auth", **headers)).status == 200


async def test_a_unix_socket_is_no_browser_s() -> None:
    async with http_gateway(UNIX) as gateway:
        assert (await gateway.ask("POST", "/x/a", Host="any")).status == 200
        assert (await gateway.ask("GET", "/x/a/send?m=open", user_agent=OLD_BROWSER)).status == 200


async def test_which_methods_there_are_is_told_to_who_asks_and_to_who_takes_another() -> None:
    async with http_gateway() as gateway:
        for method, status in (("OPTIONS", 204), ("DELETE", 405)):
            answer = await gateway.ask(method, "/x/a")
            assert (answer.status, answer.headers["allow"]) == (status, "GET, POST, PUT, OPTIONS")
            assert ("content-length" in answer.headers) is (status != 204)


# What strangers send


@pytest.mark.parametrize(
    ("method", "target", "body", "headers", "code"),
    [
        ("DELETE", "/x/a", b"", {}, 40501),
        ("GET", "/", b"", {}, 40401),
        ("GET", "/x", b"", {}, 40401),
        ("GET", "/x/json/", b"", {}, 40401),
        ("POST", "/x/%ff", b"", {}, 40009),
        ("POST", "/x/+", b"", {}, 40009),
        ("POST", "/x/%00", b"", {}, 40009),
        ("POST", "/x/a/" + "b/" * 40, b"", {}, 40009),
        ("GET", "/x/a+/json", b"", {}, 40009),
        ("GET", "/$share/g/x/json", b"", {}, 40009),
        ("GET", "/" + ",".join(f"x/{number}" for number in range(200)) + "/json", b"", {}, 40009),
        ("GET", "/x/json?since=yesterday", b"", {}, 40008),
        ("GET", "/x/json?p=9", b"", {}, 40007),
        ("POST", "/x/a?" + "&".join(f"a{number}=1" for number in range(100)), b"", {}, 40000),
        ("POST", "/x/a?title=%ff", b"", {}, 40000),
        ("POST", "/x/a", b"", {"priority": "9"}, 40007),
        ("POST", "/x/a", b"", {"actions": "view"}, 40018),
        ("POST", "/x/a", b"", {"delay": "10m"}, 40004),
        ("POST", "/x/a", b"", {"email": "a@example.org"}, 40001),
        ("POST", "/x/a", b"", {"filename": "f"}, 40014),
        ("POST", "/x/a?click=a%0ab", b"", {}, 40000),
        ("POST", "/x/a?title=%00", b"", {}, 40000),
        ("POST", "/x/a", b"", {"content_encoding": "gzip"}, 41501),
        ("POST", "/", b"{", {}, 40017),
        ("POST", "/", b'{"topic": 1}', {}, 40017),
        ("POST", "/", b"[" * 100_000, {}, 40017),
        ("POST", "/", b'{"topic": "\\ud800"}', {}, 40017),
        ("POST", "/", b'{"topic": "x/a", "delay": "1h"}', {}, 40004),
        ("POST", "/x/a", bytes(400_000), {}, 41301),
        ("POST", "/x/a?title=" + "t" * 9_000, b"", {}, 40000),
        ("POST", "/", b'{"topic": "x/a", "tags": [' + b'"t",' * 60_000 + b'"t"]}', {}, 40000),
        ("POST", "/", b'{"topic": "x/a", "tags": [1]}', {}, 40017),
    ],
)
async def test_what_is_wrong_is_said(
    method: str, target: str, body: bytes, headers: dict[str, str], code: int
) -> None:
    async with http_gateway() as gateway:
        answer = await gateway.ask(method, target, body, "", **headers)
        assert (answer.status, answer.json["code"]) == (code // 100, code)
        await trio.testing.wait_all_tasks_blocked()  # who is refused by the broker hears it before it is gone
        assert gateway.gateway.broker.connected == 0


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01",
        b"GET / HTTP/1.1\r\n\r\n",
        b"POST /x/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /x/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /x/a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic YQ==\r\n"
        + b"A: b\r\n" * 10_000
        + b"\r\n",
    ],
)
async def test_what_is_no_request_ends_the_connection(data: bytes) -> None:
    async with http_gateway() as gateway:
        caller = await gateway.dial()
        await caller.stream.send_all(data)
        heard = b""
        while part := await caller.stream.receive_some():
            heard += part
        assert heard.startswith(b"HTTP/1.1 4")
        assert gateway.gateway.server.internal_errors == 0


async def test_http_1_0_is_answered_and_closed() -> None:
    async with http_gateway() as gateway:
        for asked in (
            b"POST /x/a HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi",
            b"GET /x/a/json?poll=1 HTTP/1.0\r\n\r\n",
        ):
            caller = await gateway.dial()
            await caller.stream.send_all(asked)
            heard = b""
            while part := await caller.stream.receive_some():
                heard += part
            assert heard.startswith(b"HTTP/1.1 200 ")
            assert b"chunked" not in heard


async def test_a_body_is_read_of_those_alone_who_may_come_in() -> None:
    async with http_gateway() as gateway:
        caller = await gateway.dial()
        await caller.stream.send_all(
            b"POST /a/b HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic YWxpY2U6d3Jvbmc=\r\n"
            b"Content-Length: 300000\r\nExpect: 100-continue\r\n\r\n"
        )
        assert (await caller.stream.receive_some()).startswith(b"HTTP/1.1 401 ")
        other = await gateway.dial()
        await other.stream.send_all(
            b"POST /x/b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        )
        assert (await other.stream.receive_some()).startswith(b"HTTP/1.1 100 ")
        await other.stream.send_all(b"ok")
        assert (await other.stream.receive_some()).startswith(b"HTTP/1.1 200 ")


async def test_whoever_sends_no_end_of_a_request_is_gone(autojump_clock: trio.testing.MockClock) -> None:
    async with http_gateway() as gateway:
        caller = await gateway.dial()
        await caller.stream.send_all(b"GET /x")
        assert await caller.stream.receive_some() == b""
        assert trio.current_time() < 16


async def test_a_body_that_does_not_come_is_not_waited_for(autojump_clock: trio.testing.MockClock) -> None:
    async with http_gateway(within=1_000) as gateway:
        caller = await gateway.dial()
        await caller.stream.send_all(b"POST /x/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n")
        assert (await caller.stream.receive_some()).startswith(b"HTTP/1.1 408 ")
        assert trio.current_time() < 100


async def test_a_stream_has_signs_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_stream, "SIGN_OF_LIFE", 0.02)
    async with http_gateway() as gateway:
        caller = await gateway.dial()
        await caller.stream_of("/x/a/json")
        assert [(await caller.message())["event"] for _ in range(4)] == ["open", *["keepalive"] * 3]


async def test_a_client_that_leaves_is_gone_from_the_broker() -> None:
    async with http_gateway() as gateway:
        caller = await gateway.dial()
        await caller.stream_of("/x/a/json")
        await caller.message()
        assert gateway.gateway.broker.connected == 1
        await caller.stream.aclose()
        while gateway.gateway.broker.connected:  # noqa: ASYNC110
            await trio.sleep(0.01)


async def test_a_client_that_does_not_read_is_gone(autojump_clock: trio.testing.MockClock) -> None:
    async with http_gateway(within=1_000) as gateway:
        caller = await gateway.dial(trio.testing.lockstep_stream_pair)
        await caller.stream_of("/x/a/json")
        await caller.message()
        assert (await gateway.ask("POST", "/x/a", b"unread")).status == 200
        await trio.testing.wait_all_tasks_blocked()  # until who published is gone
        assert gateway.gateway.broker.connected == 1
        await trio.sleep(45)
        assert gateway.gateway.broker.connected == 0
        assert gateway.served == 0


async def test_a_client_that_talks_while_it_is_answered_is_gone() -> None:
    async with http_gateway() as gateway:
        caller = await gateway.dial()
        await caller.stream_of("/x/a/json")
        await caller.message()
        await caller.stream.send_all(bytes(http_connection.MAX_UNASKED + 1))
        assert await caller.line() == b""
        await trio.testing.wait_all_tasks_blocked()
        assert gateway.gateway.broker.connected == 0


async def test_a_body_that_nobody_asked_for_is_not_read_for_ever() -> None:
    async with http_gateway() as gateway:
        caller = await gateway.dial()
        await caller.stream.send_all(
            b"GET /x/a/json HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000\r\n\r\n"
        )
        assert (await caller.stream.receive_some()).startswith(b"HTTP/1.1 200 ")
        with suppress(trio.BrokenResourceError):
            for _ in range(500):
                await caller.stream.send_all(bytes(20_000))
                await trio.sleep(0.01)
        await trio.testing.wait_all_tasks_blocked()
        assert gateway.gateway.broker.connected == 0


async def test_a_gateway_that_stops_says_so() -> None:
    async with http_gateway() as gateway:
        caller = await gateway.dial()
        await caller.stream_of("/x/a/json")
        await caller.message()
        gateway.gateway.broker.shut_down()
        assert await caller.line() == b""
        assert caller.machine.their_state is h11.DONE
