"""The context: the dependencies that every part of a daemon shares, in one value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.storage.store import Store
from hushcast_runtime.timetable import Timetable
from hushcast_runtime.tracing import Tracer


@dataclass(frozen=True, slots=True)
class Context:
    """One daemon's world while it runs."""

    env: Environment
    store: Store
    counters: Counters
    tracer: Tracer
    spawn: Callable[..., None]
    """Starts a task that ends with the daemon: an async function and its arguments."""
    timetable: Timetable = field(init=False)
    """What is to be done at moments; whose daemon it is runs it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "timetable", Timetable(self.env))
