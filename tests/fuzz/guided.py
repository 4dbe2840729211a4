"""The hunt led by coverage: atheris (libFuzzer) breeds inputs that reach code not reached before."""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import atheris
import hunting
from hunting import FindingError, Result, limited_memory, size_of_process, try_one

PACKAGES = [
    "hushcast_protocol",
    "hushcast_runtime",
    "hushcast_directory",
    "hushcast",
    "hushcast_local",
    "hushcast_overlay",
]
SLOWER = 8.0  # times what code takes that is measured for coverage; three to five were seen
MAX_LENGTH = 8192  # bytes of an input
OWN_MUTATOR = 0.5  # share of inputs that the target's own mutator makes; libFuzzer's makes the others


def hunt_guided(
    name: str, seed: int, inputs: int, moves: int, end: Callable[[Result | FindingError], None]
) -> None:
    """As `hunt`, and call `end`; never returns. The first call of its process."""
    with atheris.instrument_imports(include=PACKAGES):
        from targets import TARGETS
    hunting.slower = SLOWER
    target = TARGETS[name]
    corpus, given, moved = target.corpus, 0, 0
    before, began = size_of_process(), time.perf_counter()

    def give(data: bytes) -> None:
        nonlocal given, moved
        try:
            moved += try_one(target, data)
        except FindingError as finding:
            end(finding)
            os._exit(1)
        given += 1
        if given >= inputs and moved >= moves:
            grown = (size_of_process() - before) / 1e6
            end(Result(name, given, moved, time.perf_counter() - began, grown))
            os._exit(0)

    def mutate(data: bytes, limit: int, number: int) -> bytes:
        source = random.Random(number)
        if source.random() < OWN_MUTATOR:
            return target.mutate(source, [data, *source.sample(corpus, min(3, len(corpus)))])[:limit]
        return bytes(atheris.Mutate(data, limit))

    folder = Path(tempfile.mkdtemp(prefix="hushcast-fuzz-"))
    for number, data in enumerate(corpus):
        (folder / str(number)).write_bytes(data)
    options = [f"-seed={seed}", "-timeout=0", "-rss_limit_mb=0", "-verbosity=0", f"-max_len={MAX_LENGTH}"]
    atheris.Setup([sys.argv[0], *options, str(folder)], give, custom_mutator=mutate)
    with limited_memory():
        atheris.Fuzz()
