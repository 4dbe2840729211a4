"""docs/limits.md lists every bound and time-out of the packages, with the value that it has there."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

from pages import PACKAGES, ROOT, rows

_BOUND = re.compile(r"_?MAX_[A-Z_]+")
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


def _listed() -> dict[tuple[str, str], str]:
    """Return the value of each (constant, file) on the page."""
    table = [cells for cells in rows((ROOT / "docs" / "limits.md").read_text()) if cells[0].startswith("`")]
    listed = {(cells[0].strip("`"), cells[4].strip("`")): cells[1] for cells in table}
    assert len(listed) == len(table), "a bound is listed twice"
    return listed


def test_every_bound_is_listed() -> None:
    bounds = _bounds()
    assert len(bounds) > 40
    assert bounds <= _listed().keys()


def test_listed_values_are_those_of_the_code() -> None:
    for (name, file), value in _listed().items():
        module = importlib.import_module(".".join(Path(file).with_suffix("").parts[1:]))
        stated, actual = float(value.replace(",", "")), getattr(module, name)
        assert stated == actual, f"{name} in {file} is {actual}, the page says {value}"
