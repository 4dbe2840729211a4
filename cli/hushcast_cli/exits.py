"""How a command ends: every error's exit code and its one line on standard error, decided in one place."""

from __future__ import annotations

import os
from enum import IntEnum

import click

from hushcast.errors import NoDaemon, TimedOut
from hushcast_cli.output import StdoutClosed, note
from hushcast_cli.wording import sentence
from hushcast_protocol.base.errors import HushcastError, Refusal, UsageError


class ExitCode(IntEnum):
    """The exit code of the process."""

    DONE = 0
    FAILED = 1
    USAGE = 2  # also a configuration that cannot be used
    NO_DAEMON = 3
    REFUSED = 4  # by the daemon or the network
    TIMED_OUT = 124  # as timeout(1) has it
    INTERRUPTED = 130  # as shells have it: 128 + SIGINT


class Failure(HushcastError):
    """The command failed, for a reason that fits no other exit code."""


def report(error: BaseException) -> int:
    """Tell about an error in one line and return the exit code; raise it again if it is none of ours."""
    if isinstance(error, BaseExceptionGroup):
        error = _out_of_group(error)
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, StdoutClosed | BrokenPipeError):
        _discard_stdout()
        return ExitCode.DONE
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return ExitCode.INTERRUPTED
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return ExitCode.USAGE
    if isinstance(error, click.ClickException):
        note(f"hushcast: {sentence(error)}{_hint(error)}")
        return ExitCode.USAGE if isinstance(error, click.UsageError) else ExitCode.FAILED
    if isinstance(error, HushcastError):
        note(f"hushcast: {error}")
        return _exit_code(error)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename is not None else ""
        note(f"hushcast: {where}{error.strerror or error}")
        _discard_stdout()
        return ExitCode.FAILED
    raise error


def _exit_code(error: HushcastError) -> ExitCode:
    if isinstance(error, UsageError):
        return ExitCode.USAGE
    if isinstance(error, Refusal):
        return ExitCode.REFUSED
    if isinstance(error, TimedOut):
        return ExitCode.TIMED_OUT
    return ExitCode.NO_DAEMON if isinstance(error, NoDaemon) else ExitCode.FAILED


def _out_of_group(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the one error that tells the story; the group itself where any of it is unexpected."""
    from hushcast_runtime.exception_groups import innermost

    _, unexpected = group.split((KeyboardInterrupt, StdoutClosed, HushcastError))
    if unexpected is not None:
        return group
    for kind in (KeyboardInterrupt, StdoutClosed, HushcastError):
        if (found := group.subgroup(kind)) is not None:
            return innermost(found)
    return group


def _hint(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f" (see `{context.command_path} --help`)" if context is not None else ""


def _discard_stdout() -> None:
    # Python flushes standard output once more when it exits, and would complain of what it cannot write.
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
