"""Ids that are known until their day has lapsed, and are forgotten some at a time."""

from __future__ import annotations

from collections.abc import Callable

import trio

_STEP = 1024  # ids forgotten at once, some 2 ms: others go on in between


async def forget_days(
    known: dict[bytes, int], has_lapsed: Callable[[int], bool], forget: Callable[[bytes], None]
) -> None:
    """Take out of ids with their days those whose day has lapsed; `forget` hears of each as it goes."""
    over = {day for day in set(known.values()) if has_lapsed(day)}
    lapsed = [key for key, day in known.items() if day in over] if over else []
    for begin in range(0, len(lapsed), _STEP):
        await trio.lowlevel.checkpoint()
        for key in lapsed[begin : begin + _STEP]:
            if known.pop(key, None) is not None:  # a newer one may have taken its place meanwhile
                forget(key)
