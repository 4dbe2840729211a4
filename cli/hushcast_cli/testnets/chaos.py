"""`hushcast testnet chaos`: faults and traffic on a running testnet, and a verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import click

from hushcast_cli import completion_values
from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.exits import Failure
from hushcast_cli.options import json_option, testnet_option

_positive = click.FloatRange(min=0, min_open=True)


def _kinds(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    from hushcast_testnet.chaos.fault_plan import KINDS

    kinds = tuple(kind.strip() for kind in value.split(",")) if value else ()
    for kind in kinds:
        if kind not in KINDS:
            raise click.BadParameter(f"{kind!r} is none of {', '.join(KINDS)}", context, parameter)
    return kinds


@click.command()
@testnet_option
@click.option("--minutes", type=_positive, default=1.0, show_default=True, metavar="M", help="How long.")
@click.option(
    "--seed", type=int, default=1, show_default=True, metavar="S", help="The same, the same faults."
)
@click.option(
    "--faults",
    callback=_kinds,
    shell_complete=completion_values.faults,
    metavar="KINDS",
    help="Only these, with commas between: stop, kill, restart, pause, cut, delay, lose, skew.",
)
@click.option(
    "--every", type=_positive, default=6.0, show_default=True, metavar="SECONDS", help="Mean time between."
)
@click.option(
    "--longest", type=_positive, default=12.0, show_default=True, metavar="SECONDS", help="Of one fault."
)
@click.option(
    "--rate", type=_positive, default=2.0, show_default=True, metavar="R", help="Messages a second."
)
@json_option
@pass_choices
def chaos(
    choices: Choices,
    directory: Path,
    minutes: float,
    seed: int,
    faults: tuple[str, ...],
    every: float,
    longest: float,
    rate: float,
) -> None:
    """Break a running testnet at random, with traffic, and judge what became of the messages.

    Fails if a message with a receipt was lost, one that was acknowledged was shown again, or a daemon is not
    healthy at the end.

    \b
    Example:
      hushcast testnet chaos --dir /tmp/testnet --minutes 2 --seed 7 --json
    """
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_cli.progress import reporting
    from hushcast_testnet.chaos.chaos_run import Chaos, run_chaos
    from hushcast_testnet.chaos.fault_plan import Kind

    asked = Chaos(minutes, seed, cast(tuple[Kind, ...], faults), every, longest, rate)
    with reporting() as progress:
        figures = run_chaos(directory, asked, progress)
    if choices.json:
        write(json_line(figures))
    else:
        for name, value in figures.items():
            write(text_line(f"{name:<11}{_shown(value)}"))
    if not figures["ok"]:
        raise Failure(_reason(figures))


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name} {one}" for name, one in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(f"{loss['message'][:16]} to {loss['subscriber']}" for loss in value) or "none"
    return str(value)


def _reason(figures: dict[str, Any]) -> str:
    parts = [f"{figures[name]} {name}" for name in ("lost", "duplicated") if figures[name]]
    parts += [f"{name}: {why}" for name, why in figures["unhealthy"].items()]
    return "; ".join(parts)
