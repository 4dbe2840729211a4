"""Targets: what takes hostile bytes, which errors it may answer with, and the real inputs it begins from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

import trio
from mutating import mutate_bytes
from steps import Moves

from hushcast_protocol.base.errors import PeerError

if TYPE_CHECKING:  # `guided` imports the program itself
    from hushcast_protocol.base.link.links import Link

T = TypeVar("T")
MAX_SCRIPT = 2000  # bytes: more moves take longer, and bring a machine nowhere else
FRAMES = 16  # of a script: what is set up for all of them takes longer than one
_SIZE = 3  # bytes before a frame of a script
Mutate = Callable[[Random, list[bytes]], bytes]
WATCHED: list[Moves] = []
"""What measures the moves of the input that a target has now."""


@dataclass(frozen=True)
class Target:
    """One decoder or machine. `run` returns, or raises one of `answers`; anything else is a finding."""

    name: str
    run: Callable[[bytes], object]
    examples: Callable[[], Iterable[bytes]] = field(repr=False)
    answers: tuple[type[Exception], ...] = ()
    mutate: Mutate = field(default=mutate_bytes, repr=False)
    weight: int = 10
    """Share of a long run; slow targets have smaller ones."""

    @cached_property
    def corpus(self) -> list[bytes]:
        """The real inputs."""
        return list(self.examples())

    def take(self, data: bytes) -> None:
        """Give one input to the target; raise what it must not raise."""
        try:
            self.run(data)
        except self.answers:
            return


class Script:
    """Reads a machine's moves from bytes, so that a run of moves is an input like any other."""

    def __init__(self, data: bytes, most: int = MAX_SCRIPT) -> None:
        self._data = data[:most]
        self._at = 0
        self._began = -1

    def __bool__(self) -> bool:
        """Whether there is another move; the last one has ended."""
        begins = self._began < self._at and not self.is_over  # who asks twice makes one move
        for moves in WATCHED:
            moves.next(begins)
        self._began = self._at
        return not self.is_over

    @property
    def is_over(self) -> bool:
        """Whether nothing is left; who asks this ends no move."""
        return self._at >= len(self._data)

    def take(self, size: int) -> bytes:
        """Return the next bytes, fewer at the end."""
        taken = self._data[self._at : self._at + size]
        self._at += size
        return taken

    def number(self, size: int = 1) -> int:
        """Return the next bytes as a number, 0 at the end."""
        self._at += size
        return int.from_bytes(self._data[self._at - size : self._at], "big")

    def choose(self, options: list[T] | tuple[T, ...]) -> T:
        """Return one of up to 256 options."""
        return options[self.number() % len(options)]

    def rest(self) -> bytes:
        """Return all that is left."""
        return self.take(len(self._data))

    def pieces(self, data: bytes) -> list[bytes]:
        """Cut bytes into pieces: at random places while the script lasts, then in one."""
        found = []
        while data:
            size = len(data) if self.is_over else self.number() ** 2 // 64 + 1
            found.append(data[:size])
            data = data[size:]
        return found


class EachStep(trio.abc.Instrument):
    """Measures each step of each task by itself, where a move has tasks do many."""

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        for moves in WATCHED:
            moves.next(begins=False)


def scripts(count: int = 24, size: int = 400) -> list[bytes]:
    """Random moves to begin with."""
    random = Random("scripts")
    return [random.randbytes(random.randrange(8, size)) for _ in range(count)]


def finished(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that waits for nothing, without a scheduler."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    coroutine.close()
    raise AssertionError("it waits for something")


def script_of(frames: Iterable[bytes]) -> bytes:
    """Return a script of frames, each behind its size."""
    return b"".join(len(frame).to_bytes(_SIZE, "big") + frame for frame in frames)


def frames_of(data: bytes) -> Iterator[bytes]:
    """Read a script of frames; each is a move."""
    script = Script(data, len(data))
    while script:
        yield script.take(script.number(_SIZE))


def alone(examples: Callable[[], Iterable[bytes]]) -> Callable[[], Iterator[bytes]]:
    """Have each real input be a script of one frame."""
    return lambda: (script_of([one]) for one in examples())


def many(mutate: Mutate) -> Mutate:
    """Return what makes scripts of many frames, each of them damaged."""

    def scripted(random: Random, corpus: list[bytes]) -> bytes:
        frames = [*chain.from_iterable(map(frames_of, corpus))]
        return script_of(mutate(random, frames) for _ in range(FRAMES))

    return scripted


def each(work: Callable[[bytes], Awaitable[None]]) -> Callable[[bytes], Coroutine[Any, Any, None]]:
    """Return what does a work with one frame of a script after the other."""

    async def run(data: bytes) -> None:
        for frame in frames_of(data):
            await work(frame)

    return run


class Pieces:
    """A byte stream from whoever is at the other end: its pieces are there at once, then it ends."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = [piece for piece in pieces if piece]
        self.sent = b""

    async def receive_some(self, limit: int | None = None) -> bytes:
        if not self._pieces:
            return b""
        piece = self._pieces.pop(0)
        if limit is not None and len(piece) > limit:
            self._pieces.insert(0, piece[limit:])
        return piece[:limit]

    async def send_all(self, data: bytes) -> None:
        self.sent += data


class Stranger:
    """The far end of a stream and of a link, in step with the near one: opens the link, says frames, ends."""

    def __init__(self, link: Link, frames: list[bytes], cut: int | None = None) -> None:
        """`cut` has the stream end somewhere within the frames."""
        self._link, self._frames, self._cut = link, frames, cut
        self._flow = b""
        self.heard: list[bytes] = []

    async def send_all(self, data: bytes) -> None:
        try:
            self.heard += [said for said in self._link.receive(data) if isinstance(said, bytes)]
        except PeerError as error:  # which whoever is tried would take for the stranger's own
            raise AssertionError("the near end says what a link refuses") from error
        if self._link.is_open and self._frames:
            self._flow += self._link.data_to_send()
            for frame in self._frames:
                self._link.send(frame)
            self._frames = []
            said = self._link.data_to_send()
            self._flow += said if self._cut is None else said[: self._cut % len(said)]

    async def receive_some(self, limit: int | None = None) -> bytes:
        self._flow += self._link.data_to_send()
        piece, self._flow = self._flow[:limit], self._flow[limit:]
        return piece

    async def aclose(self) -> None:
        pass
