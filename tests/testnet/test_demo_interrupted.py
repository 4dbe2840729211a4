"""A demonstration that a signal ends takes its testnet down first."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trio

from hushcast_testnet import testnet
from hushcast_testnet.demonstrations import course, gateway_demo
from hushcast_testnet.demonstrations.carrier_demo import brokers_course, overlay_course
from hushcast_testnet.inventory import FILE

OVERLAY = overlay_course(3, 0, ("relay-1",), 1, 0.1)


@pytest.fixture
def ended() -> Iterator[list[int]]:
    """Signals that would have ended this program on the spot."""
    found: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: found.append(number))
    yield found
    signal.signal(signal.SIGTERM, before)


async def is_ended(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    await trio.sleep(1)
    raise AssertionError("it goes on all the same")


async def goes_well(*_: object) -> course.CourseOutcome:
    await trio.lowlevel.checkpoint()
    return course.CourseOutcome(0, [], 0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("ends", "show"),
    [
        ("course.converse", lambda: course.run(OVERLAY, print)),
        ("carrier_demo.show_levels", lambda: course.run(brokers_course(), print)),
        ("gateway_demo._converse", lambda: gateway_demo.demo(print, print)),
    ],
)
def test_nothing_is_left_running(
    ends: str, show: Callable[[], object], ended: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    running: set[Path] = set()

    def up(directory: Path, *_: object, **__: object) -> None:
        running.add(directory)
        directory.mkdir()
        (directory / FILE).touch()

    monkeypatch.setattr(testnet, "up", up)
    monkeypatch.setattr(testnet, "down", lambda directory, _: running.remove(directory))
    monkeypatch.setattr(testnet, "status", lambda _: {"nodes": []})
    monkeypatch.setattr(course, "story", lambda *_: [])
    monkeypatch.setattr(course, "converse", goes_well)
    monkeypatch.setattr(f"hushcast_testnet.demonstrations.{ends}", is_ended)
    with pytest.raises(SystemExit):
        show()
    assert ended == []
    assert running == set()
