"""Commands in processes of their own, without the start of Python for each: forked from one that is loaded.

As a program, `python forking.py`: a server on the socket that is its standard input. A request is arguments,
environment and directory as JSON, with an answer's socket and three streams; the answer is the exit code.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import trio

# What commands load when they run.
_LOADED = (
    "hushcast.daemon",
    "hushcast_cli.chosen_daemon",
    "hushcast_cli.daemon_calls",
    "hushcast_cli.messages.topic_arguments",
    "hushcast_cli.output",
    "hushcast_cli.payload",
    "hushcast_cli.progress",
    "hushcast_node.process",
    "hushcast_testnet.testnet",
)
_MAX_REQUEST = 1 << 20  # bytes


@cache
def _server() -> socket.socket:
    """Start the server; it ends when our end of its socket is closed, as it is at our end at the latest."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen([sys.executable, __file__], stdin=theirs, stdout=subprocess.DEVNULL)
    atexit.register(process.wait)
    atexit.register(ours.close)
    return ours


async def run(
    arguments: Sequence[str | bytes | os.PathLike[str]], stdin: bytes, env: dict[str, str]
) -> tuple[int, bytes, bytes]:
    """Run `hushcast`; return its exit code and what it printed. Cancelled, it kills the command."""
    request = json.dumps([[os.fsdecode(each) for each in arguments], env, str(Path.cwd())]).encode()
    ours, theirs = trio.socket.socketpair()
    (given, giving), (printing, printed), (telling, told) = (os.pipe() for _ in range(3))
    with ours:
        with theirs:
            socket.send_fds(_server(), [request], [theirs.fileno(), given, printed, told])
        for descriptor in (given, printed, told):
            os.close(descriptor)
        outputs = [trio.lowlevel.FdStream(descriptor) for descriptor in (printing, telling)]
        texts = [bytearray(), bytearray()]

        async def give() -> None:
            with suppress(trio.BrokenResourceError):  # it did not read all
                async with trio.lowlevel.FdStream(giving) as stream:
                    await stream.send_all(stdin)

        async def read(stream: trio.lowlevel.FdStream, text: bytearray) -> None:
            async with stream:
                async for part in stream:
                    text += part

        async with trio.open_nursery() as nursery:
            nursery.start_soon(give)
            for output, text in zip(outputs, texts, strict=True):
                nursery.start_soon(read, output, text)
            answer = await ours.recv(16)
    return int(answer), bytes(texts[0]), bytes(texts[1])


def _serve(requests: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # each answers for itself
    while True:
        request, descriptors, _, _ = socket.recv_fds(requests, _MAX_REQUEST, 4)
        if not request:
            return
        if os.fork() == 0:
            requests.close()
            _answer(request, socket.socket(fileno=descriptors[0]), descriptors[1:])
        for descriptor in descriptors:
            os.close(descriptor)


def _answer(request: bytes, asking: socket.socket, streams: Sequence[int]) -> None:
    """Have a child run the command; answer when it ends, and end it when nobody waits for it any more."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    command = os.fork()
    if command == 0:
        asking.close()
        _become(request, streams)
    for stream in streams:
        os.close(stream)
    ended = os.pidfd_open(command)
    ready, _, _ = select.select([ended, asking], [], [])
    if ended not in ready:
        os.kill(command, signal.SIGKILL)
    _, status = os.waitpid(command, 0)
    with asking, suppress(BrokenPipeError):
        asking.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _become(request: bytes, streams: Sequence[int]) -> None:
    from hushcast_cli.main import main

    arguments, env, directory = json.loads(request)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(env)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.argv[1:] = arguments
    code = 1
    try:
        main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    import importlib

    for name in ("hushcast_cli.main", *_LOADED):
        importlib.import_module(name)
    _serve(socket.socket(fileno=os.dup(0)))
