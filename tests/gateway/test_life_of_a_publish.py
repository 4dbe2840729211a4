"""The life of a PUBLISH is what the gateway's README says: one is traced from its socket to the daemon."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from houses import acknowledged, houses, listening, quick
from keyed_houses import POSITION, keyed, network

from hushcast_gateway.sections.purposes_section import PurposesSection
from hushcast_protocol.mqtt.wire.packets import Publish

ROOT = Path(__file__).parents[2]
ROOMS = tuple(f"{ROOT}/{room}/" for room in ("gateway", "protocol/hushcast_protocol", "client"))
ROW = re.compile(r"^\| \d+ \| `([\w.]+)` `([\w.]+)` \| [^|]+ \| ([^|]+) \|$", re.M)
WAYS = {
    # What is entered last of each part of the way, and what first: behind these a task or the loop begins.
    "NetworkPublisher.put": "Server._read",
    "Daemon.enqueue": "NetworkPublisher._send",
    "MqttConnection.answer": "NetworkPublisher._send",
    "ClientStream.send": "MqttConnection.release",  # which the broker calls when the disk has the number
    "ClientStream.write": "ClientStream.write",
}


def listed() -> list[tuple[str, str, str]]:
    """Return module, function, and what it asks."""
    return ROW.findall((ROOT / "gateway" / "README.md").read_text())


def of_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(ROOMS)


class Traced:
    """Who called whom, from the first function of a part of the way to its last, and all that was entered."""

    def __init__(self) -> None:
        self.ways: dict[str, list[str]] = {}
        self.entered: list[str] = []

    def take(self, frame: FrameType, event: str, argument: Any) -> None:
        name = frame.f_code.co_qualname
        if event != "call" or not of_ours(frame):
            return
        self.entered.append(name)
        if name in WAYS and (way := list(_callers(frame, WAYS[name]))):
            self.ways.setdefault(name, way)


def _callers(frame: FrameType | None, first: str) -> Iterator[str]:
    """Return those of our rooms from `first` on that led to a call; none if it did not begin there."""
    found: list[str] = []
    while frame is not None:
        if of_ours(frame):
            found.insert(0, frame.f_code.co_qualname)
        frame = frame.f_back
    return iter(found[found.index(first) :] if first in found else [])


@contextmanager
def tracing() -> Iterator[Traced]:
    traced = Traced()
    sys.setprofile(traced.take)
    try:
        yield traced
    finally:
        sys.setprofile(None)


def check(traced: Traced) -> None:
    """Compare the functions on the way, each once, with those of the page."""
    walked = dict.fromkeys(name for gate in WAYS for name in traced.ways[gate])
    assert list(walked) == [name for _, name, _ in listed()]


def test_the_page_has_at_most_twenty_functions_and_all_are_there() -> None:
    assert 10 < len(listed()) <= 20
    for module, name, _ in listed():
        thing = importlib.import_module(module)
        for part in name.split("."):
            thing = getattr(thing, part)
        assert callable(thing), name


async def test_two_go_the_way_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is for whoever has the link, and one that is sealed for purposes."""
    quick(monkeypatch)
    async with houses(tmp_path, purposes=PurposesSection()) as (_, two, first, second):
        reader = await listening(two, second, "hush/home/#")
        writer = await first.connect("writer")
        with tracing() as traced:
            assert await acknowledged(writer, Publish("hush/home/a", b"x", 1, packet_id=1)) == 0
        assert (await reader.message()).payload == b"x"
    check(traced)
    async with network(tmp_path, keyed(tmp_path / "f", ())) as (one,):
        car = await one.connect("car")
        with tracing() as sealed:
            assert await car.publish(POSITION) == 0
        assert one.daemon.published
    check(sealed)
    asked = {name for _, _, asked in listed() for name in re.findall(r"`([\w.]+)`", asked)}
    assert asked <= {*traced.entered, *sealed.entered}


def hung(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield where a class puts a lambda, a partial or a method of its own into another object."""
    for one in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        methods = {f"self.{each.name}" for each in one.body if isinstance(each, ast.FunctionDef)}
        for node in ast.walk(one):
            if isinstance(node, ast.Assign):
                others = [ast.unparse(each) for each in node.targets if isinstance(each, ast.Attribute)]
                is_other = any(name.count(".") > 1 or not name.startswith("self.") for name in others)
                given = ast.unparse(node.value)
                if is_other and (given in methods or given.startswith(("lambda", "partial("))):
                    yield node
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".append"):
                yield from (each for each in node.args if ast.unparse(each) in methods)


def test_no_callback_is_hung_into_another_object() -> None:
    """What calls back is given where a part is made: nobody has to look for who sets it, and when."""
    mqtt, purposes = (ROOT / "protocol" / "hushcast_protocol" / one for one in ("mqtt", "purposes"))
    for path in (*(ROOT / "gateway").rglob("*.py"), *mqtt.glob("*.py"), *purposes.glob("*.py")):
        found = [ast.unparse(one) for one in hung(ast.parse(path.read_text()))]
        assert not found, path
