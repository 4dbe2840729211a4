"""docs/limits.md lists every bound and time-out of the packages, with the value that it has there."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import re
from pathlib import Path

from pages import PACKAGES, ROOT, rows

from hushcast_protocol.base.versions import manner
from hushcast_protocol.base.versions.manner import NEWEST, Manner

_BOUND = re.compile(r"_?MAX_[A-Z_]+")
_PAGE = ROOT / "docs" / "limits.md"
_WHOSE = re.compile(r"one [a-z]+( [a-z]+)?|the operator|everybody; .+")
_MANNER = "protocol/hushcast_protocol/base/versions/manner.py"
_TIME_OUT = re.compile(r"[A-Z][A-Z_]*_(?:TIMEOUT|WITHIN)")


def _bounds() -> set[tuple[str, str]]:
    """Return (constant, file) of every bound and time-out that a module of ours defines."""
    found = set()
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            for node in ast.parse(file.read_text()).body:
                targets = node.targets if isinstance(node, ast.Assign) else []
                if isinstance(node, ast.AnnAssign):
                    targets = [node.target]
                for target in targets:
                    names = target.elts if isinstance(target, ast.Tuple) else [target]
                    found |= {
                        (name.id, str(file.relative_to(ROOT)))
                        for name in names
                        if isinstance(name, ast.Name) and _is_bound(name.id, package)
                    }
    return found


def _is_bound(name: str, package: str) -> bool:
    # How long a test network may take to come up bounds nobody's harm.
    return bool(_BOUND.fullmatch(name) or (package != "testnet" and _TIME_OUT.fullmatch(name)))


def _table() -> list[list[str]]:
    """Return the cells of all constants on the page."""
    return [cells for cells in rows(_PAGE.read_text()) if cells[0].startswith("`")]


def _listed() -> dict[tuple[str, str], str]:
    """Return the value of each (constant, file) on the page."""
    table = _table()
    listed = {(cells[0].strip("`"), cells[-1].strip("`")): cells[1] for cells in table}
    assert len(listed) == len(table), "a bound is listed twice"
    return listed


def test_every_bound_is_listed() -> None:
    bounds = _bounds() | {(of.name, _MANNER) for of in dataclasses.fields(Manner)}
    assert len(bounds) > 40
    assert bounds <= _listed().keys()


def test_listed_values_are_those_of_the_code() -> None:
    for (name, file), value in _listed().items():
        module = importlib.import_module(".".join(Path(file).with_suffix("").parts[1:]))
        place = NEWEST if module is manner else module
        stated, actual = float(value.replace(",", "")), getattr(place, name)
        assert stated == actual, f"{name} in {file} is {actual}, the page says {value}"


def test_every_bound_says_whose_it_is() -> None:
    bounds = [cells for cells in _table() if _BOUND.fullmatch(cells[0].strip("`"))]
    assert len(bounds) > 300
    wrong = [cells[0] for cells in bounds if len(cells) != 6 or not _WHOSE.fullmatch(cells[3])]
    assert not wrong, "say whose it is: one input's, one connection's, the operator's, everybody's"


def test_what_is_everybodys_has_a_share_for_each_or_is_known_to_have_none() -> None:
    text = _PAGE.read_text()
    names = {cells[0] for cells in _table()}
    without = set()
    for cells in _table():
        if len(cells) != 6 or not cells[3].startswith("everybody; "):
            continue
        share = cells[3].removeprefix("everybody; ")
        assert set(re.findall(r"`\w+`", share)) <= names, f"{cells[0]}: the share is no bound of this page"
        if share == "no share":
            without.add(cells[0])
    section = text.partition("## What has no share\n")[2].partition("\n## ")[0]
    assert without == set(re.findall(r"`MAX_\w+`", section))
