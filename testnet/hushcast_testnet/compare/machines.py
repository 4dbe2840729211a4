"""Machines of their own for daemons of one process: work is measured here, and waits for its own machine.

All daemons of a simulation share the processor that it runs on, so that work of one would never wait for work
of the same daemon alone, and load could not spread. Here a machine keeps, in virtual time, until when each of
its parts is busy: the processor of the daemon, that of its tor, and the line up and down. What a daemon's
tasks take of the real processor is measured step by step and laid upon the daemon's own; what they write
leaves when it is done.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from typing import Any, Generic, ParamSpec, TypeVar

import trio

P = ParamSpec("P")
T = TypeVar("T")


class Cores:
    """A few cores that many share, each working on one thing at a time."""

    def __init__(self, count: int) -> None:
        self._free_at = [0.0] * count

    def work(self, seconds: float, since: float) -> float:
        """Work so many seconds on the core that is free first, from `since` on; return when it is done."""
        core = self._free_at.index(min(self._free_at))
        self._free_at[core] = max(self._free_at[core], since) + seconds
        return self._free_at[core]


class Queue:
    """One thing at a time, in the order in which they were asked for."""

    __slots__ = ("_cores", "busy_until", "worked")

    def __init__(self, cores: Cores | None = None) -> None:
        """`cores` do the work where it has none to itself."""
        self._cores = cores
        self.busy_until = 0.0
        """When it is done with all that was asked for, by trio's clock."""
        self.worked = 0.0
        """Seconds of work in all."""

    def work(self, seconds: float, since: float) -> float:
        """Lay work of so many seconds upon it that can begin at `since`; return when it is done."""
        self.worked += seconds
        begin = max(self.busy_until, since)
        self.busy_until = begin + seconds if self._cores is None else self._cores.work(seconds, begin)
        return self.busy_until


class House:
    """One machine for all daemons: its cores, and the only tor."""

    def __init__(self, cores: int) -> None:
        self.cores = Cores(cores)
        self.tor = Queue(self.cores)


class Machine:
    """What one daemon has to itself; in a house, where it queues with others for cores and tor."""

    __slots__ = ("_processors", "circuits", "down", "name", "processor", "tor", "up")

    def __init__(self, name: str, processors: Processors, house: House | None = None) -> None:
        self.name = name
        self._processors = processors
        self.processor = Queue(None if house is None else house.cores)
        self.tor = Queue() if house is None else house.tor
        self.up = Queue()
        self.down = Queue()
        self.circuits = 0
        """That its tor opened, and holds."""

    @property
    def busy_until(self) -> float:
        """When all parts of it are done with what came so far."""
        return max(part.busy_until for part in (self.processor, self.tor, self.up, self.down))

    def done(self) -> float:
        """Return when its processor is done with what its daemon did so far, by trio's clock."""
        self._processors.charge(self)
        return max(self.processor.busy_until, trio.current_time())

    def run_here(self) -> None:
        """Have the running task, and all that it starts from now on, run on this machine."""
        self._processors.move_to(self)


_MACHINE: ContextVar[Machine | None] = ContextVar("machine", default=None)


class Processors(trio.abc.Instrument):
    """Measures each step of each task on the real processor, and lays it upon its machine's."""

    def __init__(self) -> None:
        self._machine: Machine | None = None  # of the step that runs
        self._since = 0.0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Begin to measure."""
        self._machine = task.context.get(_MACHINE)
        self._since = time.thread_time()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """Lay what was measured upon the machine of the task."""
        if self._machine is not None:
            self.charge(self._machine)
            self._machine = None

    def charge(self, machine: Machine) -> None:
        """Lay what the running step took so far upon its machine, if it is this one's."""
        if machine is self._machine:
            now = time.thread_time()
            machine.processor.work(now - self._since, trio.current_time())
            self._since = now

    def add(self, seconds: float) -> None:
        """Lay work that was done before, for another daemon, upon the machine of the running step."""
        if self._machine is not None:
            self._machine.processor.work(seconds, trio.current_time())

    def move_to(self, machine: Machine) -> None:
        """Have the running task run on a machine."""
        _MACHINE.set(machine)
        self._machine, self._since = machine, time.thread_time()

    def watch_collector(self) -> Callable[[], None]:
        """Leave the collector's work out: it walks over all daemons' objects; return how to end that."""
        began = 0.0

        def heard(phase: str, info: dict[str, Any]) -> None:
            nonlocal began
            now = time.thread_time()
            if phase == "start":
                began = now
            else:
                self._since += now - began

        gc.callbacks.append(heard)
        return lambda: gc.callbacks.remove(heard)


class SharedFunction(Generic[P, T]):
    """A function whose results all daemons share, and whose work each does: measured once, laid upon each."""

    def __init__(self, function: Callable[P, T], processors: Processors) -> None:
        self._function = function
        self._processors = processors
        self._known: dict[Hashable, tuple[T, float]] = {}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what the function returns."""
        assert not kwargs
        if (known := self._known.get(args)) is not None:
            self._processors.add(known[1])
            return known[0]
        began = time.thread_time()
        result = self._function(*args, **kwargs)
        self._known[args] = result, time.thread_time() - began
        return result
