"""What a changed frame takes: the page that says so, and a release to come in which one is changed so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import next_release
import pytest

PAGE = next_release.ROOT / "docs" / "changing-a-frame.md"

SAYS_BOTH = """
from hushcast_protocol.base.versions import wires
from hushcast_protocol.base.wire import encode
from hushcast_protocol.overlay.frames import Ack, decode_overlay
table = wires.table()
one, two = table.translation(1), table.translation(2)
said = Ack(7, (2,), 9)
print(table.spoken, encode(one.down(said)).hex(), encode(two.down(said)).hex())
print(decode_overlay(one.up(encode(one.down(said)))), decode_overlay(two.up(encode(said))))
try:
    print(one.up(encode(said)))
except wires.PeerError as error:
    print(error)
for wire in table.spoken.numbers():
    manner = table.translation(wire).manner
    print(manner.longest_delay, manner.first_retry, manner.attempts)
"""


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return next_release.make(tmp_path_factory.mktemp("next"))


def run(release: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": next_release.path_of(release), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=release, env=environment, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_changed_frame_takes_its_declaration_and_two_files_more() -> None:
    touched = {*next_release.CHANGED, *next_release.ADDED}
    assert len(touched - {next_release.FRAMES}) == 2
    named = PAGE.read_text()
    for name in (next_release.TABLE, f"`{Path(next_release.BEFORE).stem}`"):
        assert name in named, name


@pytest.mark.slow
def test_the_next_release_says_both(release: Path) -> None:
    assert run(release, "-c", SAYS_BOTH).splitlines() == [
        "wires 1 to 2 93a361636b079102 94a561636b2f3207910209",
        "Ack(number=7, unrouted=(2,), waiting=0) Ack(number=7, unrouted=(2,), waiting=9)",
        "a frame is of another wire than its link",
        "3.0 30.0 3",
        "2.0 45.0 3",
    ]


@pytest.mark.slow
def test_its_golden_bytes_are_those_of_the_wire_before_but_for_one_line(release: Path) -> None:
    run(release, "tools/golden_kinds.py")
    kept = release / "tests" / "data"
    before, after = (
        set((kept / f"wire-{number}" / "kinds.txt").read_text().splitlines()) for number in (1, 2)
    )
    assert len(before) == len(after)
    assert [line.rpartition(" ")[0] for line in after - before] == ["overlay Ack"]
