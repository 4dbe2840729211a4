"""The description of requests (OpenAPI) is what the gateway does: requests drawn from it, and answers."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import pytest
import trio
from http_world import HttpCaller, HttpResponse, http_gateway
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from hushcast_protocol.http.http_request import HttpRequest
from hushcast_protocol.http.openapi import description
from hushcast_protocol.http.refusals import HttpRefusal
from hushcast_protocol.http.routes import route
from hushcast_protocol.http.subscription_request import StreamForm

DESCRIBED = json.loads(description())
EVENT = DESCRIBED["components"]["schemas"]["Event"]
REFUSAL = DESCRIBED["components"]["schemas"]["Refusal"]
EXAMPLES = 40  # gateways in a run, each asked 20 requests at most
MANY = 100_000  # requests, from as many seeds as it takes
TYPES = {"string": str, "integer": int, "array": list, "object": dict, "boolean": bool}


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in DESCRIBED["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def wrong(value: Any, schema: dict[str, Any]) -> str:
    """Return what of a value is not as a schema has it, empty if it is; of the words that ours use."""
    if "enum" in schema and value not in schema["enum"]:
        return f"{value!r} is none of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        return f"{value!r} is not {schema['const']!r}"
    if "type" in schema and not isinstance(value, TYPES[schema["type"]]):
        return f"{value!r} is no {schema['type']}"
    if isinstance(value, int) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        return f"{value} is out of range"
    if isinstance(value, dict) and "properties" in schema:
        if lacking := set(schema.get("required", ())) - value.keys():
            return f"{lacking} lack"
        if unknown := value.keys() - schema["properties"].keys():
            return f"{unknown} are not described"
        return next(filter(None, (wrong(one, schema["properties"][name]) for name, one in value.items())), "")
    if isinstance(value, list) and "items" in schema:
        return next(filter(None, (wrong(one, schema["items"]) for one in value)), "")
    return ""


def test_a_schema_is_held() -> None:
    sound = {"id": "A" * 12, "time": 1, "event": "message", "topic": "a", "priority": 5}
    assert not wrong(sound, EVENT)
    for name, value in (("priority", 6), ("event", "other"), ("tags", [1]), ("unknown", 1), ("time", "1")):
        assert wrong(sound | {name: value}, EVENT)
    assert wrong({"id": "A" * 12}, EVENT)


@pytest.mark.parametrize(("method", "path"), [(method, path) for method, path, _ in operations()])
def test_what_is_described_is_there(method: str, path: str) -> None:
    request = HttpRequest(method, path.replace("{topic}", "a/b"), (("host", b"localhost"),))
    assert route(request, 0, b"") is not None


def test_what_is_there_is_described() -> None:
    paths = DESCRIBED["paths"]
    assert {f"/{{topic}}/{form.value}" for form in StreamForm} <= paths.keys()
    for path in ("/", "/x", "/v1/other", "/x/other"):
        with pytest.raises(HttpRefusal):
            route(HttpRequest("GET", path), 0, b"")
    for method in ("DELETE", "PATCH", "HEAD", "CONNECT", "TRACE"):
        with pytest.raises(HttpRefusal):
            route(HttpRequest(method, "/x"), 0, b"")


TEXTS = st.text(max_size=12) | st.sampled_from(
    ["1", "all", "latest", "high", "x/a", "kept/+", "#", "10m", "[]"]
)
NAMED = TEXTS.filter(bool)
POSTED = st.fixed_dictionaries(
    {},
    optional={
        "topic": st.sampled_from(["x/a", "kept/a", "", "#"]) | st.text(max_size=6),
        "message": TEXTS,
        "title": TEXTS,
        "priority": st.integers(-1, 7) | TEXTS,
        "tags": st.lists(TEXTS, max_size=3),
        "actions": st.lists(st.dictionaries(TEXTS, TEXTS, max_size=2), max_size=4),
        "markdown": st.booleans(),
        "retain": st.booleans(),
        "cache": TEXTS,
    },
)
BODIES = st.binary(max_size=40) | POSTED.map(lambda one: json.dumps(one).encode())


@dataclass(frozen=True)
class Asked:
    """A request drawn from the description, and what that says of the answer."""

    method: str
    target: str
    body: bytes
    user: str
    headers: dict[str, str]
    operation: dict[str, Any] = field(repr=False)


@st.composite
def requests(draw: st.DrawFn) -> Asked | None:
    """Draw a request; none where it would be a stream that does not end."""
    method, path, operation = draw(st.sampled_from(list(operations())))
    topic = draw(st.sampled_from(["x/a", "kept/a", "x/a,kept/a", "a/b", "hush/open/n"]) | NAMED)
    query, headers = {"poll": "1"}, {}
    for one in operation.get("parameters", ()):
        if one["in"] == "query" and draw(st.integers(0, 3)) == 0:
            value = draw(TEXTS)
            is_header = draw(st.booleans()) and value.isprintable() and value == value.strip()
            (headers if is_header else query)[one["name"]] = value
    body = draw(BODIES) if method != "GET" else b""
    target = path.replace("{topic}", quote(topic, safe="/,"))
    target += "?" + "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())
    user = draw(st.sampled_from(["", "alice:right", "alice:wrong"]))
    if "ws" in path or query["poll"] != "1" or "poll" in headers:
        return None
    return Asked(method, target, body, user, headers, operation)


def ask_what_is_drawn(number: int, gateways: int) -> Counter[int]:
    """Ask so many gateways what is drawn from a seed; return how often each status was answered."""
    seen: Counter[int] = Counter()

    @seed(number)
    @settings(max_examples=gateways, deadline=None, database=None)
    @given(st.lists(requests(), min_size=1, max_size=20))
    def ask(drawn: list[Asked | None]) -> None:
        trio.run(_ask, [one for one in drawn if one is not None], seen)

    ask()
    return seen


def test_any_requests_of_the_description_are_answered_as_that_says() -> None:
    assert ask_what_is_drawn(random.randrange(2**32), EXAMPLES)[200]


@pytest.mark.soak
def test_a_hundred_thousand_requests_are_answered_as_the_description_says() -> None:
    seen: Counter[int] = Counter()
    for number in itertools.count(1):
        seen += ask_what_is_drawn(number, 1_000)
        if seen.total() >= MANY:
            break
    print(f"{seen.total()} requests from {number} seeds: {dict(sorted(seen.items()))}")
    assert min(seen.values()) > 100, "each answer comes often"


async def _ask(asked: list[Asked], seen: Counter[int]) -> None:
    async with http_gateway() as gateway:
        for one in asked:
            answer = await gateway.ask(one.method, one.target, one.body, one.user, **one.headers)
            seen[answer.status] += 1
            assert gateway.gateway.server.internal_errors == 0
            assert str(answer.status) in one.operation["responses"], (answer.status, answer.body)
            assert answer.status < 500
            check(answer, one.operation)


def check(answer: HttpResponse, operation: dict[str, Any]) -> None:
    """Compare an answer with what is said of it."""
    kind = answer.headers["content-type"].partition(";")[0]
    if answer.status >= 400:
        assert not wrong(answer.json, REFUSAL)
        assert answer.json["http"] == answer.status
        return
    said = operation["responses"]["200"]["content"]
    assert not said or kind in said
    if kind == "application/x-ndjson":
        assert not any(wrong(event, EVENT) for event in answer.events)
    elif said and said.get("application/json", {}).get("schema", {}).get("$ref", "").endswith("Event"):
        assert not wrong(answer.json, EVENT)


CUT = (
    b"POST /x/a?title=t HTTP/1.1\r\nHost: localhost\r\nTags: a,b\r\nContent-Length: 5\r\n\r\nhello"
    b"GET /x/a/json?poll=1 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'e\r\n{"topic":"x/a"\r\n1\r\n}\r\n0\r\n\r\n'
)


async def test_requests_are_the_same_however_they_are_cut() -> None:
    chance = random.Random(3)
    async with http_gateway() as gateway:
        for size in (1, 7, 1_000):
            caller = await gateway.dial()

            async def send(caller: HttpCaller = caller, size: int = size) -> None:
                rest = CUT
                while rest:
                    step = chance.randint(1, size)
                    await caller.stream.send_all(rest[:step])
                    rest = rest[step:]

            async with trio.open_nursery() as nursery:
                nursery.start_soon(send)
                heard = b""
                while heard.count(b"HTTP/1.1 200") < 3 or not heard.endswith(b"}\n"):
                    heard += await caller.stream.receive_some()
            assert heard.count(b'"message":"hello"') == heard.count(b'"message":"triggered"') == 1
