"""A release to come, made of this one: a copy in which a frame, a manner, states and an answer changed.

Of the frame is changed what `docs/changing-a-frame.md` says, and all of it: the frame, what the wire before
said, and a row of the table; of the manner, two numbers. States have a version more, which a node's notes
something in; and what a daemon answers to a publication says something more.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("protocol", "runtime", "directory", "client", "local", "overlay", "central", "brokers", "node")
BESIDE = ("testnet", "cli", "gateway", "tools", "tests/data", "docs")

FRAMES = "protocol/hushcast_protocol/overlay/frames.py"
MANNER = "protocol/hushcast_protocol/base/versions/manner.py"
TABLE = "protocol/hushcast_protocol/base/versions/wires.py"
NODE_STATE = "node/hushcast_node/upgrade.py"
STATE = "runtime/hushcast_runtime/storage/state_layout.py"
ANSWERS = "client/hushcast/control_messages.py"
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
            'WireTable({1: "hushcast_protocol.base.versions.translations:UNCHANGED"})',
            'WireTable({1: "hushcast_protocol.overlay.wire_1:WIRE_1", '
            '2: "hushcast_protocol.base.versions.translations:UNCHANGED"})',
        )
    ],
}
"""Of the frame."""
CHANGED_BESIDES = {
    MANNER: [
        ("    longest_delay: float = 3.0\n", "    longest_delay: float = 2.0\n"),
        ("    first_retry: float = 30.0\n", "    first_retry: float = 45.0\n"),
    ],
    NODE_STATE: [
        (
            "    Migration(up=_drop_mailboxes, down=unchanged),\n)\n",
            "    Migration(up=_drop_mailboxes, down=unchanged),\n    Migration(up=_note, down=_forget),\n)\n",
        ),
        (
            "MIGRATIONS: tuple[Migration, ...] = (\n",
            "async def _note(store: Store) -> list[Change]:\n"
            '    return [Change("later", b"", b"noted")]\n\n\n'
            "async def _forget(store: Store) -> list[Change]:\n"
            '    return [Change("later", b"", None)]\n\n\n'
            "MIGRATIONS: tuple[Migration, ...] = (\n",
        ),
    ],
    STATE: [
        (
            "= (Migration(up=unchanged, down=unchanged),)",
            "= (Migration(up=unchanged, down=unchanged), Migration(up=unchanged, down=unchanged))",
        )
    ],
    ANSWERS: [
        ("VERSION = 2\n", "VERSION = 3\n"),
        (
            '    receipt: Literal["accepted", "queued"] = "accepted"\n',
            '    receipt: Literal["accepted", "queued"] = "accepted"\n    later: str = "said since"\n',
        ),
    ],
}
ADDED = {
    BEFORE: '''"""What wire 1 says otherwise than the newest. It goes with that wire."""

from __future__ import annotations

from hushcast_protocol.base.versions.manner import Manner
from hushcast_protocol.base.versions.translations import Translation
from hushcast_protocol.base.wire import Counter, Wire
from hushcast_protocol.overlay.frames import Ack


class Ack1(Wire, frozen=True, tag="ack"):
    """It did not say how many wait."""

    number: Counter
    unrouted: tuple[Counter, ...]


WIRE_1 = Translation(
    {Ack1: lambda said: Ack(said.number, said.unrouted)},
    {Ack: lambda said: Ack1(said.number, said.unrouted)},
    Manner(longest_delay=3.0, first_retry=30.0),
)
'''
}


def make(place: Path) -> Path:
    """Write that release's sources there; return the folder."""
    for name in (*ROOMS, *BESIDE):
        shutil.copytree(
            ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules")
        )
    change(lambda name: place / name)
    return place


def change(place_of: Callable[[str], Path]) -> None:
    """Change sources that lie where a function has it for each of their names here."""
    for name, changes in (*CHANGED.items(), *CHANGED_BESIDES.items()):
        path = place_of(name)
        text = path.read_text()
        for before, after in changes:
            assert text.count(before) == 1, f"{name} has not {before!r} once"
            text = text.replace(before, after)
        path.write_text(text)
    for name, text in ADDED.items():
        place_of(name).write_text(text)


def path_of(place: Path) -> str:
    """Return the PYTHONPATH of its programs."""
    return ":".join(str(place / name) for name in (*ROOMS, *BESIDE))
