"""`hushcast testnet compare`: the central server beside trees and brokers, as figures 3 to 5 of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.options import FOLDER, json_option, number_option
from hushcast_protocol.base.errors import UsageError


class NumbersParameter(click.ParamType):  # type: ignore[type-arg]
    """Whole numbers from 1, with commas between them; in order, each once."""

    name = "numbers"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Return the numbers."""
        if isinstance(value, tuple):
            return value
        try:
            numbers = sorted({int(part) for part in str(value).split(",")})
        except ValueError:
            self.fail(f"{value!r}: give whole numbers with commas between them, as 25,50,100", param, ctx)
        if numbers[0] < 1:
            self.fail(f"{value!r}: each is at least 1", param, ctx)
        return tuple(numbers)


@click.command()
@click.option(
    "--out",
    "directory",
    type=FOLDER,
    required=True,
    metavar="DIR",
    help="Write the figures into this directory; go on where one there was interrupted.",
)
@number_option("--nodes", 2, default=500, help="Participants.")
@click.option(
    "--subscribers",
    type=NumbersParameter(),
    metavar="K,K,…",
    help="How many of them subscribe, in figures 3 and 4.  [default: 25,50,100,250,500 of 500]",
)
@click.option(
    "--publishers",
    type=NumbersParameter(),
    metavar="P,P,…",
    help="How many publish at the same time, in figure 5.  [default: 1,10,25,50]",
)
@number_option("--seeds", 1, default=2, metavar="S", help="Repeat all of it with so many seeds.")
@click.option(
    "--links",
    type=click.Choice(["warm", "cold"]),
    default="warm",
    show_default=True,
    help="Networks in use, or such that nobody has used before.",
)
@click.option(
    "--distance",
    type=int,
    default=0,
    show_default=True,
    metavar="MS",
    help="Milliseconds between tors, one way.",
)
@json_option
@pass_choices
def compare(
    choices: Choices,
    /,
    directory: Path,
    nodes: int,
    subscribers: tuple[int, ...] | None,
    publishers: tuple[int, ...] | None,
    seeds: int,
    **conditions: Any,
) -> None:
    """Compare the central server, the spanning trees and brokers.

    Runs real daemons of all of them in this process, each on a modelled machine of its own: what they work
    is measured here, what Tor adds was measured on a private Tor. Writes figures 3, 4 and 5 of the paper
    under both profiles: index.html, an SVG each, measurements.csv, compare.json, and model.json with what
    was assumed. The default takes about two hours; an interrupted one goes on when it is started again.

    \b
    Example:
      hushcast testnet compare --out /tmp/figures
      hushcast testnet compare --out /tmp/small --nodes 40 --subscribers 5,10,20,40 --publishers 1,5,10
      hushcast testnet compare --out /tmp/cold --nodes 100 --seeds 1 --links cold --distance 40
    """
    from hushcast_cli.output import json_line, note, write
    from hushcast_cli.progress import reporting
    from hushcast_cli.testnets.simulate import check_nodes
    from hushcast_testnet.compare.comparison import PAGE, settings
    from hushcast_testnet.compare.comparison import compare as run
    from hushcast_testnet.tor.distance import Distance

    check_nodes(nodes)
    Distance(conditions["distance"])  # or it is told what one is
    for name, given in (("--subscribers", subscribers), ("--publishers", publishers)):
        if given is not None and max(given) > nodes:
            raise UsageError(f"{name} {max(given)}: there are only --nodes {nodes}")
    with reporting() as progress:
        wanted = settings(nodes, subscribers, publishers, seeds, **conditions)
        found = run(wanted, directory, progress)
    if choices.json:
        write(json_line(found))
    else:
        note(f"open {directory / PAGE}")
