"""A tor process of our own: started with a configuration we write, watched, and stopped with us."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import trio

from hushcast_protocol.errors import UsageError
from hushcast_runtime.tor.endpoints import Endpoint, parse_endpoint
from hushcast_runtime.transports.base import TransportError

_STOP_WITHIN = 5.0  # seconds between asking tor to end and ending it
_LOOK_EVERY = 0.02  # seconds; tor offers no event for "the control port file is there"
_LOG = "tor.log"
_PORT_FILE = "control-port"


def torrc(state: Path, include: Path | None) -> str:
    """Return the configuration of a client tor that keeps its state in the directory `state`.

    Both doors are loopback ports of the kernel's choice. `include` names a file of further lines. Raises
    `UsageError` when a path holds what a torrc line cannot.
    """
    lines = [
        "ClientOnly 1",
        f'DataDirectory "{_quotable(state / "data")}"',
        "SocksPort 127.0.0.1:auto ExtendedErrors",
        "ControlPort 127.0.0.1:auto",
        f'ControlPortWriteToFile "{_quotable(state / _PORT_FILE)}"',
        "CookieAuthentication 1",
        f"__OwningControllerProcess {os.getpid()}",
        "SafeLogging 1",
        "Log notice stdout",
    ]
    if include is not None:
        lines.append(f'%include "{_quotable(include.absolute())}"')
    return "\n".join(lines) + "\n"


def _quotable(path: Path) -> str:
    text = str(path)
    if any(character in text for character in '"\\\n\r*?['):  # tor expands patterns in %include
        raise UsageError(f"tor cannot use a path with quotes, backslashes, *, ? or [: {text}")
    return text


async def run_tor(
    state_directory: Path,
    torrc_include: Path | None = None,
    *,
    task_status: trio.TaskStatus[Endpoint] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run a tor until cancelled; report the endpoint of its control port as soon as that is open.

    What tor says goes to `tor.log` in `state_directory`, written anew at each start. Raises `UsageError` when
    no tor is installed and `TransportError` when the process ends by itself, at any time.
    """
    program = shutil.which("tor")
    if program is None:
        raise UsageError("tor is not installed: install the package tor, or name a running one's endpoints")
    state = _prepare(state_directory, torrc_include)
    process = await _start(program, state)
    ended = False
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_fail_when_ended, process)
            task_status.started(await _control_port(state / _PORT_FILE))
    except* TransportError:
        ended = True
    finally:
        with trio.CancelScope(shield=True):
            await _stop(process)
    if ended:
        raise TransportError(f"our tor ended with status {process.returncode}: see its {_LOG}")


def _prepare(directory: Path, include: Path | None) -> Path:
    state = directory.absolute()
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        state.chmod(0o700)
        (state / _PORT_FILE).unlink(missing_ok=True)
        (state / "torrc").write_text(torrc(state, include))
    except OSError as error:
        raise UsageError(f"tor's state directory {state} cannot be used: {error.strerror}") from None
    return state


async def _start(program: str, state: Path) -> trio.Process:
    # The machine's own configuration must not mix in, so the file of defaults is one that is not there.
    command = [program, "--ignore-missing-torrc", "--defaults-torrc", str(state / "no-defaults")]
    command += ["-f", str(state / "torrc")]
    # A session of its own: an interrupt typed at our terminal reaches us alone, and we stop tor in our time.
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


async def _fail_when_ended(process: trio.Process) -> None:
    await process.wait()
    raise TransportError("our tor ended")


async def _control_port(file: Path) -> Endpoint:
    while not (text := _text_of(file)).endswith("\n"):  # noqa: ASYNC110 - tor sets no event
        await trio.sleep(_LOOK_EVERY)
    return parse_endpoint(text.removeprefix("PORT="))


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
