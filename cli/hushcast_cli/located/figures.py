"""`hushcast lab located figures`: what matching and proofs take, as pictures on one page."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.options import FILE, FOLDER, json_option, number_option
from hushcast_protocol.base.errors import UsageError


@click.command()
@click.option("--out", type=FOLDER, required=True, metavar="DIR", help="Where the page and its pictures go.")
@number_option("--subscriptions", 1, 20_000_000, default=100_000, help="How many subscriptions.")
@number_option("--messages", 1, 16_384, default=2000, help="Messages of the interval.")
@number_option("--seed", 0, default=1, metavar="S", help="What is drawn follows from it.")
@click.option(
    "--batch",
    "batches",
    type=FOLDER,
    metavar="DIR",
    help="Measure the newest batch of a feed of your own, with --given.",
)
@click.option("--given", type=FILE, metavar="FILE", help="Subscriptions of your own, one JSON object a line.")
@json_option
@pass_choices
def figures(
    choices: Choices,
    out: Path,
    subscriptions: int,
    messages: int,
    seed: int,
    batches: Path | None,
    given: Path | None,
) -> None:
    """Measure matching and proofs, as in figures 6 to 9 of the paper.

    Draws subscriptions and messages, and for nine pairs of alpha and theta matches them with pruning and
    without, makes proofs for 2,000 subscribers, and verifies 200. Writes index.html, an SVG each, and
    figures.json. It needs numpy. With --batch and --given it takes what you have in place of what is drawn,
    with alpha and theta of the figures all the same. The default takes two minutes, a million subscriptions
    ten minutes and 500 MB.

    \b
    Example:
      hushcast lab located figures --out /tmp/located --subscriptions 1000000
    """
    from hushcast_cli.output import json_line, note, write
    from hushcast_cli.progress import reporting

    try:
        from hushcast_located.figures.figures_run import run, run_given
    except ImportError:
        from hushcast_runtime.extras import how_to_get

        raise UsageError(f"this needs numpy: {how_to_get('located')}") from None
    with reporting() as progress:
        if batches is not None and given is not None:
            page = run_given(out, batches, given, progress)
        elif batches is None and given is None:
            page = run(out, (subscriptions, messages, seed), progress)
        else:
            raise UsageError("--batch and --given go together: a feed's batches, and who subscribes")
    if choices.json:
        write(json_line({"out": str(out), "page": str(page)}))
    else:
        note(f"open {page}")
