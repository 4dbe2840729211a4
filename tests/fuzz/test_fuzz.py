"""The short hunt, the same inputs every time, and the hunt itself: it finds what it is there to find."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import hunting
import pytest
from core_examples import DIRECTORY, NETWORK, NOW, stream
from fuzzing import FRAMES, Script, Stranger, Target, alone, frames_of, many, script_of
from hunting import FindingError, hunt, keep, try_one
from steps import BUDGET
from targets import TARGETS
from targets_daemons import _made, _Records, _requests

from hushcast_protocol.authorities.directory_requests import MAX_DIRECTORY_ANSWER
from hushcast_protocol.base.link.links import Link
from hushcast_runtime.tor.control import ControlClient

HERE = Path(__file__).parent
SHORT = 40  # inputs for each unit of weight


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_hostile_inputs_are_taken_or_refused(name: str) -> None:
    target = TARGETS[name]
    hunt(target, seed=1, inputs=SHORT * target.weight)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_the_same_seed_gives_the_same_inputs(name: str) -> None:
    def inputs(seed: int) -> list[bytes]:
        found: list[bytes] = []
        target = TARGETS[name]
        hunt(Target(name, found.append, target.examples, mutate=target.mutate), seed, 20)
        return found[-20:]

    assert inputs(1) == inputs(1)
    assert inputs(1) != inputs(2)


def _hangs(data: bytes) -> None:
    while data:
        pass


def _works(data: bytes) -> None:
    until = time.thread_time() + 1.5 * BUDGET
    while time.thread_time() < until:
        pass


def _moves(data: bytes) -> None:
    """As long in all, in moves that are each short."""
    script = Script(bytes(30))
    while script:
        script.take(1)
        until = time.thread_time() + BUDGET / 20
        while time.thread_time() < until:
            pass


def _grows(data: bytes) -> None:
    held = [bytearray(1 << 26)]
    while len(held) < 64:
        held.append(bytearray(1 << 26))


def _recurses(data: bytes) -> None:
    _recurses(data)


def _fails(data: bytes) -> None:
    if len(data) != 4:
        raise KeyError(data)


@pytest.mark.slow
@pytest.mark.parametrize("run", [_hangs, _works, _grows, _recurses, _fails])
def test_what_no_input_may_do_is_found(run, monkeypatch, tmp_path) -> None:
    if run in (_hangs, _grows):  # the others are found by what they do, however slow the machine
        monkeypatch.setattr(hunting, "HANG", 0.2)
    target = Target("bad", run, lambda: [b"good"], answers=(ValueError,))
    with pytest.raises(FindingError) as found:
        hunt(target, 1, 100)
    file = keep(found.value, tmp_path)
    data = bytes.fromhex(file.read_text())
    assert data == found.value.data
    assert type(found.value.__cause__).__name__ in file.with_suffix(".txt").read_text()
    with pytest.raises(FindingError):
        try_one(target, data)


def test_a_target_that_keeps_of_each_input_is_found() -> None:
    kept = []
    target = Target("bad", lambda data: kept.append(bytearray(1 << 22)), lambda: [b"good"])
    with pytest.raises(FindingError, match="MB more"):
        hunt(target, 1, 100)


def test_an_answer_is_no_finding() -> None:
    hunt(Target("good", _fails, lambda: [b"good"], answers=(KeyError,)), 1, 100)


def test_many_short_moves_are_no_finding() -> None:
    hunt(Target("good", _moves, lambda: [b"good"]), 1, 2)


def _thirty(data: bytes) -> None:
    script = Script(bytes(30))
    while script:
        script.take(1)


def test_a_move_is_what_begins_and_an_input_is_at_least_one() -> None:
    assert try_one(Target("good", _thirty, list), b"") == 30
    assert try_one(Target("good", len, list), b"") == 1

    def cut(data: bytes) -> None:
        """Two moves: who asks twice, or cuts what a move gives into pieces, makes none."""
        script = Script(data)
        while script and script:
            script.take(3)
            assert b"".join(script.pieces(bytes(20))) == bytes(20)
            assert script.is_over == (not script)

    assert try_one(Target("good", cut, list), b"abc" + bytes(20) + b"a") == 2


def test_a_script_gives_its_frames_and_each_is_a_move_and_damaged() -> None:
    given: list[bytes] = []
    scripts = Target("good", lambda data: given.extend(frames_of(data)), alone(lambda: [b"a", b""]))
    assert try_one(scripts, script_of([b"a", b"", b"bc"])) == 3
    assert given == [b"a", b"", b"bc"]
    assert [[*frames_of(data)] for data in scripts.corpus] == [[b"a"], [b""]]
    made = many(lambda random, frames: random.choice(frames) + b"!")(Random(1), scripts.corpus)
    assert len([*frames_of(made)]) == FRAMES
    assert {*frames_of(made)} == {b"a!", b"!"}


def test_a_control_port_answers_what_it_is_asked(monkeypatch) -> None:
    answered: set[str] = set()
    ask = ControlClient.ask

    async def noted(client: ControlClient, command: str) -> Any:
        reply = await ask(client, command)
        answered.add(command.partition(" ")[0])
        return reply

    monkeypatch.setattr(ControlClient, "ask", noted)
    hunt(TARGETS["tor-control"], 1, 10)
    assert answered == {"PROTOCOLINFO", "AUTHENTICATE", "GETINFO", "GETCONF", "ADD_ONION", "DEL_ONION"}


async def test_a_stranger_asks_a_directory_and_hears_its_answer() -> None:
    server = await _made(_Records(), [NOW], 1)
    for request in _requests():
        link = Link.initiate(NETWORK.id, DIRECTORY.public(), stream(3), MAX_DIRECTORY_ANSWER)
        asker: Any = Stranger(link, [request])
        await server._answer(asker)
        assert len(asker.heard) == 1
        with pytest.raises(AssertionError, match="refuses"):
            await asker.send_all(bytes(40))


def test_a_hunt_goes_on_until_it_had_its_inputs_and_its_moves() -> None:
    target = Target("good", _thirty, lambda: [b"good"])
    few, many = hunt(target, 1, 2, moves=40), hunt(target, 1, 0, moves=100)
    assert (few.inputs, few.moves) == (2, 60)
    assert (many.inputs, many.moves) == (4, 120)


@pytest.mark.slow
def test_moves_stand_in_the_table_beside_inputs() -> None:
    command = [sys.executable, HERE, "--inputs", "0", "--moves", "900", "--only", "parcel-memory", "address"]
    done = subprocess.run([*command, "--seeded"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    head, *rows, last = [line.split() for line in done.stdout.splitlines() if "atheris" not in line]
    assert head[:4] == ["target", "mode", "inputs", "moves"]
    assert last == ["2", "hunts,", "none", "with", "a", "finding"]
    assert [row[:2] for row in rows] == [["address", "seeded"], ["parcel-memory", "seeded"]]
    (texts, each), (runs, moves) = ([int(one.replace(",", "")) for one in row[2:4]] for row in rows)
    assert texts == each == 900
    assert runs < 900 <= moves


@pytest.mark.slow
def test_a_finding_is_replayed_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "sealed-parcel-0123456789ab.hex"
    file.write_text(b"anything".hex())
    done = subprocess.run([sys.executable, HERE, "--replay", file], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "takes these 8 bytes" in done.stdout
