"""Keys of summaries, and what docs/summary.md says of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

_PAGE = Path(__file__).parents[2] / "docs" / "summary.md"


def check_documented(summary: dict[str, Any], *kinds: str) -> None:
    """Check that a summary of runs of these kinds has the keys that the page says it has, and no other."""
    always, sometimes = _documented({"all", *kinds})
    found = _keys(json.loads(json.dumps(summary)), "")
    assert found <= always | sometimes, f"not on the page: {sorted(found - always - sometimes)}"
    assert always <= found, f"on the page, and missing: {sorted(always - found)}"


def _documented(kinds: set[str]) -> tuple[set[str], set[str]]:
    """Return the keys that such a summary always has, and those that it may have."""
    always: set[str] = set()
    sometimes: set[str] = set()
    for keys, places in re.findall(r"^\| (`.+?`) \| (.+?) \|", _PAGE.read_text(), re.MULTILINE):
        named = set(re.findall(r"`([^`]+)`", keys))
        for place in places.split(", "):
            kind, _, condition = place.partition(" if ")
            if kind in kinds:
                (sometimes if condition else always).update(named)
    return always, sometimes


def _keys(value: Any, path: str) -> set[str]:
    """Return the paths of all values that are neither object nor list of objects; an empty one has none."""
    if isinstance(value, dict):
        named = {re.sub(r"^[\d.]+$", "*", key): each for key, each in value.items()}
        return {key for name, each in named.items() for key in _keys(each, f"{path}.{name}".lstrip("."))}
    if isinstance(value, list) and all(isinstance(each, dict) for each in value):
        return {key for each in value for key in _keys(each, f"{path}[]")}
    return {path}
