"""A release to come, made of this one: a copy of its sources, in which one frame of the overlay has changed.

What is changed here is what `docs/changing-a-frame.md` says, and all of it: the frame, what the wire before
said, and a row of the table.
"""

from __future__ import annotations

import shutil
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("protocol", "runtime", "directory", "client", "local", "overlay", "central", "brokers", "node")
BESIDE = ("testnet", "cli", "gateway", "tools", "tests/data", "docs")

FRAMES = "protocol/hushcast_protocol/overlay/frames.py"
TABLE = "protocol/hushcast_protocol/base/wires.py"
BEFORE = "protocol/hushcast_protocol/overlay/wire_1.py"

CHANGED = {
    FRAMES: [
        ('class Ack(Wire, frozen=True, tag="ack"):', 'class Ack(Wire, frozen=True, tag="ack/2"):'),
        (
            "    unrouted: Annotated[tuple[Counter, ...], msgspec.Meta(max_length=MAX_UNROUTED)]\n",
            "    unrouted: Annotated[tuple[Counter, ...], msgspec.Meta(max_length=MAX_UNROUTED)]\n"
            "    waiting: Counter = 0\n",
        ),
    ],
    TABLE: [
        (
            'WireTable({1: "hushcast_protocol.base.translations:UNCHANGED"})',
            'WireTable({1: "hushcast_protocol.overlay.wire_1:WIRE_1", '
            '2: "hushcast_protocol.base.translations:UNCHANGED"})',
        )
    ],
}
ADDED = {
    BEFORE: '''"""What wire 1 says otherwise than the newest. It goes with that wire."""

from __future__ import annotations

from hushcast_protocol.base.translations import Translation
from hushcast_protocol.base.wire import Counter, Wire
from hushcast_protocol.overlay.frames import Ack


class Ack1(Wire, frozen=True, tag="ack"):
    """It did not say how many wait."""

    number: Counter
    unrouted: tuple[Counter, ...]


WIRE_1 = Translation(
    {Ack1: lambda said: Ack(said.number, said.unrouted)},
    {Ack: lambda said: Ack1(said.number, said.unrouted)},
)
'''
}


def make(place: Path) -> Path:
    """Write that release's sources there; return the folder."""
    for name in (*ROOMS, *BESIDE):
        shutil.copytree(
            ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules")
        )
    for name, changes in CHANGED.items():
        text = (place / name).read_text()
        for before, after in changes:
            assert text.count(before) == 1, f"{name} has not {before!r} once"
            text = text.replace(before, after)
        (place / name).write_text(text)
    for name, text in ADDED.items():
        (place / name).write_text(text)
    return place


def path_of(place: Path) -> str:
    """Return the PYTHONPATH of its programs."""
    return ":".join(str(place / name) for name in (*ROOMS, *BESIDE))
