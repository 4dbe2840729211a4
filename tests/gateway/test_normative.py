"""The table of MQTT 5's normative statements is whole, and the tests that it names are there."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STATEMENTS: dict[str, dict[str, str]] = tomllib.loads((Path(__file__).parent / "normative.toml").read_text())


def test_all_statements_are_there() -> None:
    assert len(STATEMENTS) == 251
    numbers = defaultdict(set)
    for name in STATEMENTS:
        found = re.fullmatch(r"MQTT-(\d\.\d+(?:\.\d+)?)-(\d+)", name)
        assert found, name
        numbers[found[1]].add(int(found[2]))
    for section, those in numbers.items():
        first = 2 if section == "2.2.1" else 1  # there is no MQTT-2.2.1-1
        assert those == set(range(first, first + len(those))), section


@cache
def functions(path: Path) -> set[str]:
    return {
        node.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_has_a_test_or_a_reason(name: str) -> None:
    (how, what) = next(iter(STATEMENTS[name].items()))
    assert len(STATEMENTS[name]) == 1
    assert how in ("test", "why")
    if how == "why":
        assert what
        assert not what.startswith("to do")
        return
    path, _, function = what.partition("::")
    assert function.startswith("test_")
    assert function in functions(ROOT / path), what
