"""Of what others see of ends without a name each number is of a wire, or known to be a release's own."""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path

import pytest
from drilled_wire import BEFORE, BOTH, LATER, mix_releases, release

from hushcast_protocol.base.versions.manner import NEWEST, Manner
from hushcast_protocol.base.versions.network_wire import NetworkWire
from hushcast_protocol.base.versions.wires import FIRST

ROOT = Path(__file__).parents[3]
ACTING = (
    "overlay/hushcast_overlay/routes",
    "overlay/hushcast_overlay/keepers/keeper_questions.py",
    "overlay/hushcast_overlay/shards/shard_fetcher.py",
    "overlay/hushcast_overlay/rosters.py",
    "local/hushcast_local/outbox.py",
    "local/hushcast_local/prober.py",
    "local/hushcast_local/publisher.py",
    "local/hushcast_local/second_looks.py",
    "local/hushcast_local/subscriber.py",
    "central/hushcast_central/user",
    "brokers/hushcast_brokers/client",
    "directory/hushcast_directory/client",
    "runtime/hushcast_runtime/carriers",
)
"""Where ends without a name do what others see."""

UNSEEN = {
    "LOOK_EVERY": "a daemon's look at its own clock",
    "OPENED_AT_ONCE": "a step of a daemon",
    "DIGESTS_HELD": "what is remembered",
    "LOST_AFTER": "what a daemon says of itself",
    "OTHERS_WITHIN": "what applications wait for",
    "HOSTS_DAYS": "what hosts do",
    "PROBE_WITHIN": "when a probe counts as lost",
    "WITHDRAW_WITHIN": "what applications wait for",
    "FORGOTTEN_WITHIN": "what applications wait for",
    "LATE": "an audit that is not made",
}
"""Numbers of these files that nobody else sees or times."""


def numbers() -> set[tuple[str, str]]:
    """Return (file, name) of each number in one of these files that is no bound, nor private to a module."""
    found = set()
    for place in ACTING:
        path = ROOT / place
        for file in [path] if path.suffix else sorted(path.rglob("*.py")):
            for node in ast.parse(file.read_text()).body:
                if not isinstance(node, ast.Assign) or not _is_number(node.value):
                    continue
                for target in node.targets:
                    for name in target.elts if isinstance(target, ast.Tuple) else [target]:
                        if isinstance(name, ast.Name) and re.fullmatch(r"(?!MAX_)[A-Z][A-Z_]*", name.id):
                            found.add((str(file.relative_to(ROOT)), name.id))
    return found


def _is_number(value: ast.expr) -> bool:
    if isinstance(value, ast.Tuple):
        return all(_is_number(one) for one in value.elts)
    if isinstance(value, ast.BinOp):
        return _is_number(value.left) or _is_number(value.right)
    if isinstance(value, ast.Name):
        return value.id.isupper()
    return isinstance(value, ast.Constant) and type(value.value) in (int, float)


def test_each_number_is_of_the_manner_or_known_to_be_none() -> None:
    """A new one has to be put somewhere: into the manner, where others see it."""
    page = (ROOT / "docs" / "limits.md").read_text()
    section = page.partition("### What is a release's own still\n")[2].partition("\n## ")[0]
    own = {
        (name, file)
        for file, names in re.findall(r"^- `([^`]+)`: (.*)$", section, re.MULTILINE)
        for name in re.findall(r"`([A-Z_]+)`", names)
    }
    here = numbers()
    assert len(here) > 30
    seen = {(name, file) for file, name in here if name not in UNSEEN}
    assert seen - own == set(), "into the manner; if it cannot be there, say so in docs/limits.md"
    assert own - seen == set(), "no such number is there"
    assert {name for _, name in here} >= UNSEEN.keys()


def test_a_network_is_shown_the_manner_of_its_wire_whatever_the_release(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mix_releases(monkeypatch)

    def manner(of: object, wire: int) -> Manner:
        with release(of):  # type: ignore[arg-type]
            return NetworkWire(wire).manner

    assert manner(BEFORE, 1) == manner(BOTH, 1) == manner(LATER, 1) == NEWEST
    assert manner(BOTH, 2) == manner(LATER, 2)
    differing = {
        of.name
        for of in dataclasses.fields(Manner)
        if getattr(manner(BOTH, 1), of.name) != getattr(manner(BOTH, 2), of.name)
    }
    assert len(differing) >= 2
    assert manner(BEFORE, 2) == manner(BEFORE, FIRST.highest), "who is left behind dials nobody"
