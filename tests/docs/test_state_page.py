"""docs/state.md is what records are declared to be; every kind that code reads or writes is declared."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from pages import ROOT

from hushcast_overlay.relay.identity import RECORDS_OF_ADDRESS, RECORDS_OF_IDENTITY
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner

# Calls that name a kind, and at which place.
_CALLS = {"Change": 0, "scan": 0, "put": 0, "delete": 0, "restore": 1, "Records": 1, "read_records": 1}


@pytest.fixture(scope="module")
def state_page() -> ModuleType:
    return importlib.import_module("state_page")


def test_the_page_is_up_to_date(state_page: ModuleType) -> None:
    page = state_page.PAGE.read_text()
    assert state_page.renewed(page) == page, "run python tools/state_page.py"


def test_every_owner_has_records(state_page: ModuleType) -> None:
    assert {owner for kind, _ in state_page.declared() for owner in kind.owners} == set(StateOwner)


def test_each_owner_has_a_kind_once(state_page: ModuleType) -> None:
    held = [(owner, kind) for kind, _ in state_page.declared() for owner in kind.owners]
    assert len(held) > 60
    assert len(set(held)) == len(held)


def test_a_kind_without_owner_is_refused() -> None:
    with pytest.raises(TypeError):
        RecordKind("thing", holds="things", lifetime="for ever")  # type: ignore[call-arg]


def test_kinds_are_declared_where_they_are_used(state_page: ModuleType) -> None:
    kinds = [kind for kind, _ in state_page.declared()]
    used = 0
    for room in state_page.ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")):
            for name in _kinds_named(file):
                value = getattr(_module(ROOT / room, file), name, None)
                if isinstance(value, str):
                    used += 1
                    assert any(value is kind for kind in kinds), f"{name} in {file} is no declared kind"
    assert used > 100


def _kinds_named(file: Path) -> Iterator[str]:
    """Return the names in capitals by which a file's calls on a store or ledger name kinds."""
    for node in ast.walk(ast.parse(file.read_text())):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        place = _CALLS.get(called)
        if place is None or len(node.args) <= place:
            continue
        kind = node.args[place]
        is_text = called != "put" and isinstance(kind, ast.Constant) and isinstance(kind.value, str)
        assert not is_text, f"{file}: a kind is declared, and named by its name"
        if isinstance(kind, ast.Name) and kind.id.isupper():
            yield kind.id


def _module(room: Path, file: Path) -> ModuleType:
    return importlib.import_module(".".join(file.relative_to(room).with_suffix("").parts))


def test_all_that_a_relay_declares_goes_with_its_name(state_page: ModuleType) -> None:
    """Whose name is replaced keeps nothing of the old one's, which would tell that the two are one."""
    declared = {kind for kind, _ in state_page.declared() if StateOwner.RELAY in kind.owners}
    assert declared == {*RECORDS_OF_IDENTITY, *RECORDS_OF_ADDRESS}
