"""What takes long says so to a person who watches, on standard error; a program's stays empty."""

from __future__ import annotations

import io
import sys
import time

import pytest
import trio

from hushcast.errors import NoDaemon
from hushcast_cli import progress
from hushcast_cli.awaited_progress import shown_when_slow
from hushcast_cli.progress import PATIENCE, shown_when_late


class Terminal(io.StringIO):
    """Standard error where a person watches."""

    def isatty(self) -> bool:
        return True


async def waited(seconds: float) -> None:
    async with shown_when_slow("waiting for a relay's receipt"):
        await trio.sleep(seconds)


@pytest.mark.parametrize(("seconds", "is_shown"), [(PATIENCE / 2, False), (3 * PATIENCE, True)])
async def test_a_terminal_shows_what_is_waited_for_once_it_takes_long(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch, seconds: float, is_shown: bool
) -> None:
    shown = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", shown)
    await waited(seconds)
    assert ("waiting for a relay's receipt" in shown.getvalue()) is is_shown


async def test_an_error_is_what_it_was(autojump_clock: trio.testing.MockClock) -> None:
    with pytest.raises(NoDaemon):
        async with shown_when_slow("waiting for the daemon's answer"):
            raise NoDaemon("it does not run")


async def test_a_program_reads_nothing_of_it(
    autojump_clock: trio.testing.MockClock, capsys: pytest.CaptureFixture[str]
) -> None:
    await waited(3 * PATIENCE)
    assert capsys.readouterr() == ("", "")


def test_what_blocks_is_shown_once_it_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    text, shown = "waiting for the daemon's answer", Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", shown)
    with shown_when_late(text):
        pass
    assert shown.getvalue() == ""
    monkeypatch.setattr(progress, "PATIENCE", 0)
    with pytest.raises(NoDaemon), shown_when_late(text):
        raise NoDaemon(_seen(shown, text))
    assert text in shown.getvalue()


def _seen(shown: Terminal, text: str) -> str:
    """Return once it is shown, or ten seconds have passed."""
    given_up = time.monotonic() + 10
    while text not in shown.getvalue() and time.monotonic() < given_up:
        time.sleep(0.01)
    return text
