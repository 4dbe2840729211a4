"""Steps: what a task does between two visits to the scheduler, while no other task gets its turn.

A stranger who can make one step long keeps everybody else waiting, and tells from who waits what runs in one
process. So a daemon measures its steps, and says which was too long: where it ended, and nothing of what it
worked on.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Mapping

import trio

from hushcast_runtime.logs import log

LONG = 0.05  # seconds of a processor; the most that a step may take for whatever a stranger sends
LOOKED_AT = 0.01  # seconds that a step has to last until its processor time is asked for: to ask takes longer
RENEWED_AFTER = 0.001  # seconds until the processor time is asked for anew: a busy loop has many steps
COMPLAIN_EVERY = 600.0  # seconds between two lines of the log


class Steps(trio.abc.Instrument):
    """Keeps the longest step since it was last asked, and logs a long one every ten minutes at most.

    Collecting garbage is no step's work, though it happens within one: it is kept apart.
    """

    def __init__(self) -> None:
        self._began = math.inf  # it is added within a step, of which it sees the end alone
        self._worked = time.thread_time()  # what came before the step, or a moment before it
        self._asked = 0.0  # when that was
        self._collection_began = 0.0
        self._collected = 0.0  # within the step
        self._longest, self._longest_collection = 0.0, 0.0
        self._untold, self._untold_place, self._count = 0.0, "", 0
        self._complained: float | None = None

    def begin(self) -> None:
        """Measure all steps of this thread's loop from now on."""
        gc.callbacks.append(self.collecting)
        trio.lowlevel.add_instrument(self)

    def end(self) -> None:
        """Measure no more."""
        gc.callbacks.remove(self.collecting)
        trio.lowlevel.remove_instrument(self)

    def take_longest(self) -> tuple[float, float]:
        """Return the processor seconds of the longest step and the longest collection since the last call.

        0 if a step was below `LOOKED_AT`. Whole milliseconds: more would tell of single messages.
        """
        longest = round(self._longest, 3), round(self._longest_collection, 3)
        self._longest = self._longest_collection = 0.0
        return longest

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """Look at the step if it lasted: all others cost a look at the clock. The next one begins with it.

        A wait for something to do lies between two steps, and counts with the second. It is no work.
        """
        now = time.perf_counter()
        lasted, self._began = now - self._began, now
        if lasted < LOOKED_AT:  # as nearly all do, some ten thousand a second
            if self._collected:
                self._collected = 0.0
            if now - self._asked >= RENEWED_AFTER:
                self._asked, self._worked = now, time.thread_time()
            return
        collected, self._collected = self._collected, 0.0
        worked = time.thread_time()
        # Short steps of `RENEWED_AFTER` before it are in it. Waiting for a processor is not.
        took = min(worked - self._worked, lasted) - collected
        self._asked, self._worked = now, worked
        if took >= LOOKED_AT:
            self._note(took, task, now)

    def collecting(self, phase: str, info: Mapping[str, int]) -> None:
        """Hear from the collector of garbage that it begins or stops."""
        if phase == "start":
            self._collection_began = time.thread_time()
        else:
            took = time.thread_time() - self._collection_began
            self._collected += took
            self._longest_collection = max(self._longest_collection, took)

    def _note(self, took: float, task: trio.lowlevel.Task, now: float) -> None:
        self._longest = max(self._longest, took)
        if took < LONG:
            return
        self._count += 1
        if took > self._untold:
            self._untold, self._untold_place = took, place_of(task)
        if self._complained is None or now - self._complained >= COMPLAIN_EVERY:
            log.warning(
                "a step kept all others waiting",
                place=self._untold_place,
                seconds=round(self._untold, 3),
                count=self._count,
            )
            self._complained = now
            self._untold, self._untold_place, self._count = 0.0, "", 0


def place_of(task: trio.lowlevel.Task) -> str:
    """Return where a task stands, as `module.function:line` of the innermost code of ours that waits."""
    waits: object = task.coro
    code = getattr(waits, "cr_code", None)
    place = code.co_qualname if code else ""  # one that has ended stands nowhere
    while (frame := getattr(waits, "cr_frame", None)) is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("hushcast"):
            place = f"{module}.{frame.f_code.co_qualname}:{frame.f_lineno}"
        waits = getattr(waits, "cr_await", None)
    return place


steps = Steps()
"""The steps of this process, once it measures them."""
