"""What is printed: escaping, and which error ends how."""

from __future__ import annotations

import unicodedata

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcast.errors import NoDaemon
from hushcast_cli.exits import ExitCode, Failure, TimedOut, report
from hushcast_cli.output import StdoutClosed, printable
from hushcast_protocol.base.errors import DecodeError, HushcastError, Refusal, UsageError
from hushcast_runtime.storage.store import StoreError


@given(st.text(st.characters()))
def test_nothing_printable_drives_a_terminal(text: str) -> None:
    shown = printable(text)
    assert not any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in shown)
    shown.encode()


@given(st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "M", "Zs"))))
def test_harmless_text_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Failure("x"), ExitCode.FAILED),
        (StoreError("x"), ExitCode.FAILED),
        (DecodeError("x"), ExitCode.FAILED),
        (HushcastError("x"), ExitCode.FAILED),
        (FileNotFoundError(2, "No such file", "/x"), ExitCode.FAILED),
        (click.ClickException("x"), ExitCode.FAILED),
        (UsageError("x"), ExitCode.USAGE),
        (click.UsageError("x"), ExitCode.USAGE),
        (NoDaemon("x"), ExitCode.NO_DAEMON),
        (Refusal("x"), ExitCode.REFUSED),
        (TimedOut("x"), ExitCode.TIMED_OUT),
        (BaseExceptionGroup("tasks", [ExceptionGroup("tasks", [Refusal("x")])]), ExitCode.REFUSED),
    ],
)
def test_every_failure_is_one_line_and_its_code(
    error: BaseException, code: ExitCode, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(error) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("hushcast: ")


@pytest.mark.parametrize(
    "error",
    [
        KeyboardInterrupt(),
        BaseExceptionGroup("tasks", [KeyboardInterrupt(), Refusal("x")]),
        BaseExceptionGroup("tasks", [StdoutClosed(), BaseExceptionGroup("tasks", [KeyboardInterrupt()])]),
    ],
)
def test_an_interrupt_wins_and_says_nothing(error: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(error) == ExitCode.INTERRUPTED
    assert capsys.readouterr().err == ""


def test_a_message_over_several_lines_becomes_one(capsys: pytest.CaptureFixture[str]) -> None:
    report(Refusal("first\nsecond \x1b[2J"))
    assert capsys.readouterr().err == "hushcast: first second \\x1b[2J\n"


@pytest.mark.parametrize("error", [ValueError("x"), ExceptionGroup("tasks", [Refusal("x"), ValueError("x")])])
def test_errors_of_this_program_are_not_hidden(error: Exception) -> None:
    with pytest.raises(type(error)):
        report(error)
