"""`--distance` and `--seed`: how far the tors of a testnet are from each other."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click


def distance_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add both options, which the command gets as `distance`."""

    @click.option(
        "--distance",
        "far",
        type=int,
        default=0,
        show_default=True,
        metavar="MS",
        help="Milliseconds that each connection between tors takes one way, in the mean; 40 is an ocean.",
    )
    @click.option("--seed", type=int, metavar="S", help="With --distance: what draws them.  [default: 1]")
    @functools.wraps(command)
    def wrapped(*given: Any, far: int, seed: int | None, **named: Any) -> None:
        from hushcast_testnet.tor.distance import Distance

        if seed is not None and not far:
            raise click.UsageError(
                "--seed draws what connections take: give --distance", click.get_current_context()
            )
        command(*given, distance=Distance(far) if seed is None else Distance(far, seed), **named)

    return wrapped
