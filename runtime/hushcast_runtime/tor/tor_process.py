"""A tor process of our own: started with a configuration we write, started again, and stopped with us."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import trio

from hushcast_protocol.base.backoff import Backoff
from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.logs import log
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.endpoints import Endpoint, parse_endpoint

_STOP_WITHIN = 5.0  # seconds between asking tor to end and ending it
_LOOK_EVERY = 0.02  # seconds; tor offers no event for "the control port file is there"
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0  # seconds between the end of one and the start of the next
_LOG, _LAST_LOG = "tor.log", "tor.log.1"
_PORT_FILE = "control-port"
_SOCKS, _CONTROL = "socks", "control"

# No circuit of ours is used again: each has an isolation of its own. `circuits` has those closed whose stream
# has ended. By default tor keeps the rest, where nobody was reached, for ten minutes; it looks for old ones
# every half a minute, and closes those that it finds at one moment.
OLD_CIRCUITS = """\
MaxCircuitDirtiness 30
NewCircuitPeriod 1"""


Opened = Callable[[Endpoint], None]
"""Hears where the control port of a tor is, once it is open."""


def torrc(state: Path, include: Path | None) -> str:
    """Return the configuration of a client tor that keeps its state in the directory `state`.

    Its control and SOCKS ports are Unix sockets in that directory, which nobody else may enter. `include`
    names a file of further lines. Raises `UsageError` when a path holds what a torrc line cannot.
    """
    lines = [
        "ClientOnly 1",
        f'DataDirectory "{_quotable(state / "data")}"',
        f'SocksPort unix:"{_quotable(socks_of(state).path)}" ExtendedErrors',
        f'ControlPort unix:"{_quotable(state / _CONTROL)}"',
        f'ControlPortWriteToFile "{_quotable(state / _PORT_FILE)}"',
        "CookieAuthentication 1",
        OLD_CIRCUITS,
        f"__OwningControllerProcess {os.getpid()}",
        "SafeLogging 1",
        "Log notice stdout",
    ]
    if include is not None:
        lines.append(f'%include "{_quotable(include.absolute())}"')
    return "\n".join(lines) + "\n"


def socks_of(state: Path) -> Endpoint:
    """Return where the SOCKS port is of a tor that keeps its state in the directory `state`."""
    return Endpoint(path=str(state.absolute() / _SOCKS))


def _quotable(path: Path | str) -> str:
    text = str(path)
    if any(character in text for character in '"\\\n\r*?['):  # tor expands patterns in %include
        raise UsageError(f"tor cannot use a path with quotes, backslashes, *, ? or [: {text}")
    return text


async def keep_tor(state: Path, include: Path | None, opened: Opened, randomness: Randomness) -> None:
    """Run a tor until cancelled, and start it again with growing pauses when it ends.

    `opened` hears the endpoint of its control port each time that is open. Raises as `run_tor` does while
    none ever was: then what is wrong is the installation or the configuration, and another try is of no use.
    """
    ever = False
    backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE, randomness)

    def note(endpoint: Endpoint) -> None:
        nonlocal ever
        ever = True
        opened(endpoint)

    while True:
        began = trio.current_time()
        try:
            await run_tor(state, include, note)
        except (TransportError, UsageError) as error:
            if not ever:
                raise
            if trio.current_time() - began > _LONGEST_PAUSE:
                backoff.reset()
            pause = backoff.next()
            log.warning("our tor ended", reason=str(error), again_in=round(pause, 1))
            await trio.sleep(pause)


async def run_tor(state_directory: Path, torrc_include: Path | None, opened: Opened) -> None:
    """Run a tor until cancelled; `opened` hears the endpoint of its control port as soon as that is open.

    What tor says goes to `tor.log` in `state_directory`, what its last run said is in `tor.log.1`. Raises
    `UsageError` when no tor is installed and `TransportError` when the process ends by itself, at any time.
    """
    program = shutil.which("tor")
    if program is None:
        raise UsageError("tor is not installed: install the package tor, or name a running one's endpoints")
    state = _prepare(state_directory, torrc_include)
    process = await _start(program, state)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_tell_when_open, state / _PORT_FILE, opened)
            await process.wait()
            nursery.cancel_scope.cancel()
    finally:
        with trio.CancelScope(shield=True):
            await _stop(process)
    raise TransportError(f"our tor ended with status {process.returncode}: see its {_LOG}")


def _prepare(directory: Path, include: Path | None) -> Path:
    state = directory.absolute()
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        state.chmod(0o700)
        (state / _PORT_FILE).unlink(missing_ok=True)
        if (state / _LOG).exists():
            (state / _LOG).replace(state / _LAST_LOG)
        (state / "torrc").write_text(torrc(state, include))
    except OSError as error:
        raise UsageError(f"tor's state directory {state} cannot be used: {error.strerror}") from None
    return state


async def _start(program: str, state: Path) -> trio.Process:
    # The machine's own configuration must not mix in, so the file of defaults is one that is not there.
    command = [program, "--ignore-missing-torrc", "--defaults-torrc", str(state / "no-defaults")]
    command += ["-f", str(state / "torrc")]
    # A session of its own: an interrupt typed at our terminal reaches only us, and we stop tor in order.
    log = os.open(state / _LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        return await trio.lowlevel.open_process(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=state,
        )
    finally:
        os.close(log)


async def _tell_when_open(file: Path, opened: Opened) -> None:
    while not (text := _text_of(file)).endswith("\n"):  # noqa: ASYNC110 - tor sets no event
        await trio.sleep(_LOOK_EVERY)
    opened(parse_endpoint(text.replace("UNIX_PORT=", "unix:", 1)))


def _text_of(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""


async def _stop(process: trio.Process) -> None:
    if process.poll() is None:
        process.terminate()
        with trio.move_on_after(_STOP_WITHIN):
            await process.wait()
    if process.poll() is None:
        process.kill()
        await process.wait()
