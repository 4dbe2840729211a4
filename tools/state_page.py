"""Writes docs/state.md: a table for each owner of state, from the kinds of records that code declares.

`python tools/state_page.py` renews the page, `--check` only tells whether it is up to date.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

from generated_page import renew_or_check

from hushcast_protocol.base.record_kinds import RecordKind, StateOwner

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "state.md"
ROOMS = (
    *("protocol", "runtime", "directory", "local", "overlay", "central", "brokers", "node"),
    *("gateway", "located"),
)
"""Those whose code keeps records."""

_DECLARED = re.compile(r'= RecordKind\(\s*"([a-z-]+)"')
_PART = re.compile(r"(<!-- generated: records -->\n).*?(<!-- end -->)", re.DOTALL)


def declared() -> list[tuple[RecordKind, str]]:
    """Return every kind that is declared, and the file that does so, in the order of names.

    Two owners may each have a kind of one name.
    """
    found: dict[int, tuple[RecordKind, str]] = {}
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")):
            names = set(_DECLARED.findall(file.read_text()))
            if not names:
                continue
            module = importlib.import_module(".".join(file.relative_to(ROOT / room).with_suffix("").parts))
            for value in vars(module).values():
                if isinstance(value, RecordKind) and value in names:
                    found.setdefault(id(value), (value, file.relative_to(ROOT).as_posix()))
    return sorted(found.values(), key=lambda one: one[0])


def renewed(page: str) -> str:
    """Return the page with its tables written anew."""
    return _PART.sub(lambda part: f"{part[1]}\n{_tables()}\n{part[2]}", page)


def _tables() -> str:
    kinds = declared()
    return "\n".join(
        _table(owner, [(kind, file) for kind, file in kinds if owner in kind.owners]) for owner in StateOwner
    )


def _table(owner: StateOwner, kinds: list[tuple[RecordKind, str]]) -> str:
    rows = [
        f"| `{kind}` | {kind.holds} | {kind.lifetime} | {kind.bound or '–'} | `{file}` |"
        for kind, file in kinds
    ]
    return "\n".join(
        [
            f"## {owner.value}",
            "",
            "| records | what they hold | how long | at most | declared in |",
            "|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(renew_or_check(PAGE, renewed, "the declarations"))
