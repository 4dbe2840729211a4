"""Steps: how much of some work is done, and how long the rest will take, judged by what took how long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass

EARLY = 0.02  # share of the work before which nothing is said of the rest


def told(text: str, share: float, seconds: float | None) -> str:
    """Return what is being done, the share done and the `seconds` left, as people read it."""
    if share == 0:
        return text
    done = f"{100 * share:.0f} % done"
    if seconds is None:
        return f"{text} ({done})"
    if seconds < 90:
        left = f"{max(1, round(seconds))} s"
    elif seconds < 5400:
        left = f"{round(seconds / 60)} min"
    else:
        left = f"{round(seconds / 3600)} h"
    return f"{text} ({done}, about {left} left)"


class WorkSteps:
    """Work of a known cost, in any unit, told of step by step; threads may share it."""

    def __init__(
        self, tell: Callable[[str], None], cost: float, now: Callable[[], float] = time.monotonic
    ) -> None:
        """`tell` hears each step as it begins, with the share done and the time left."""
        self._tell, self._whole, self._now = tell, cost, now
        self._began = now()
        self._done, self._text = 0.0, ""
        self._share, self._ends = 0.0, self._began
        self._lock = threading.Lock()

    def begin(self, text: str) -> None:
        """Tell of the next step."""
        with self._lock:
            self._text = text
            self._say()

    def end(self, cost: float) -> None:
        """Count a step as done."""
        with self._lock:
            self._done += cost
            self._estimate(self._done / self._whole)

    def refresh(self, share: float | None = None) -> None:
        """Tell again what is done now; `share` of the whole, where it is known better than by steps."""
        with self._lock:
            if share is not None:
                self._estimate(share)
            self._say()

    def _estimate(self, share: float) -> None:
        now, self._share = self._now(), min(1.0, share)
        if self._share >= EARLY:
            self._ends = now + (now - self._began) * (1 - self._share) / self._share

    def _say(self) -> None:
        left = self._ends - self._now()
        # A step that takes longer than those before let expect: nothing is known of the rest.
        self._tell(told(self._text, self._share, left if left > 0 else None))


@contextmanager
def each_second(do: Callable[[], None] | None) -> Iterator[None]:
    """Call `do` once a second, in a thread of its own, until the body ends; nothing where there is none."""
    if do is None:
        yield
        return
    over = threading.Event()

    def go_on() -> None:
        while not over.wait(1.0):
            do()

    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@dataclass(frozen=True)
class WorkStep:
    """One step: what it is called, what it costs against the others, and what does it."""

    text: str
    cost: float
    do: Callable[[], None]


def go_through(
    lanes: Sequence[Sequence[WorkStep]],
    tell: Callable[[str], None],
    *,
    last: Sequence[WorkStep] = (),
    at_once: int = 1,
    live: bool = False,
    interrupt: Callable[[], None] = lambda: None,
) -> None:
    """Do all steps and tell of each as it begins; with `live` once a second, too.

    The steps of a lane follow each other; so many lanes as `at_once` says go on at the same time, the first
    ones first. Steps that are `last` come when all lanes are done. The first error ends all; where that is
    Ctrl-C, `interrupt` ends the steps under way.
    """
    steps = WorkSteps(tell, sum(step.cost for lane in (*lanes, last) for step in lane))
    failed = threading.Event()

    def go(lane: Sequence[WorkStep]) -> None:
        for step in lane:
            if failed.is_set():
                return
            steps.begin(step.text)
            step.do()
            steps.end(step.cost)

    with each_second(steps.refresh if live else None), ThreadPoolExecutor(at_once) as pool:
        try:
            for done in as_completed([pool.submit(go, lane) for lane in lanes]):
                done.result()
            pool.submit(go, last).result()
        except KeyboardInterrupt:
            failed.set()
            interrupt()
            raise
        except BaseException:
            failed.set()
            raise
