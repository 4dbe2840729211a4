"""When a process looks for garbage: not among what it loads, nor at its end, when all goes with it.

Python looks through all that is new whenever there are 700 objects more, and twice through everything at the
end: that was a third of the CPU of a command (`tests/cli/test_start.py`).
"""

from __future__ import annotations

import gc

# New objects until the collector looks through them, and looks until it looks through older ones, too.
_LOADING = (50_000, 10, 10)  # about what a daemon has loaded when it begins
# At Python's 700 a gateway with 250 busy clients spent more than a tenth of its time on that.
_RUNNING = (5_000, 10, 10)


def begin_loading() -> None:
    """Look no more through what is loaded: it stays. A command, which ends soon, goes on so."""
    gc.set_threshold(*_LOADING)


def begin_running() -> None:
    """Take what a daemon began with for what stays, and look from now on as one that runs for months.

    To look through what it began with takes 25 ms, whenever strangers have made enough that is new.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_RUNNING)


def end() -> None:
    """Look through nothing more: the process ends."""
    gc.freeze()
