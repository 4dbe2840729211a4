"""The life of a PUBLISH is what the gateway's README says: one is traced from its socket to the daemon."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from houses import acknowledged, houses, listening, quick
from keyed_houses import POSITION, keyed, network
from traced_life import ROOT, check, listed, tracing

from hushcast_gateway.sections.purposes_section import PurposesSection
from hushcast_protocol.mqtt.wire.packets import Publish


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
