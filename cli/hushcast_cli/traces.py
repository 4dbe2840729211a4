"""`hushcast traces`: synthetic traces."""

from __future__ import annotations

from typing import Any

import click

from hushcast_cli.options import Choices, depth_option, json_option, pass_choices, profile_option
from hushcast_cli.spark import master_option

_positive = click.IntRange(min=1)


@click.group()
@json_option
def traces() -> None:
    """Make traces for `hushcast analyze`, of networks larger than a machine can run."""


@traces.command()
@click.option("--nodes", type=_positive, required=True, metavar="N", help="Relays.")
@click.option("--subscribers", type=_positive, required=True, metavar="K", help="Subscribers on each topic.")
@click.option("--topics", type=_positive, default=1, show_default=True, metavar="T", help="Topics.")
@click.option(
    "--publications",
    type=click.IntRange(min=0),
    required=True,
    metavar="P",
    help="Messages published, on all topics together.",
)
@click.option(
    "--epochs", type=_positive, default=1, show_default=True, metavar="E", help="Hours; 24 are a day."
)
@depth_option
@profile_option
@click.option(
    "--origins",
    type=click.IntRange(1, 8),
    metavar="O",
    help="Random relays that each message is dropped at; the profile's unless given.",
)
@click.option(
    "--clients",
    type=click.IntRange(min=0),
    metavar="C",
    help="Daemons in no roster; with 0 relays subscribe. Unless given half of all subscriptions, under "
    "paper 0.",
)
@click.option(
    "--authors",
    type=click.IntRange(min=0),
    default=0,
    metavar="A",
    help="Daemons that publish on a topic, drawn for each; all unless given.",
)
@click.option("--up", type=float, default=48.0, show_default=True, metavar="E", help="Mean epochs up.")
@click.option(
    "--down", type=float, default=0.0, metavar="E", help="Mean epochs away; always there unless given."
)
@click.option("--seed", type=int, default=1, show_default=True, metavar="S", help="The same gives the same.")
@click.option("--run", default="generated", show_default=True, metavar="NAME", help="What the run is called.")
@click.option("--out", required=True, metavar="DIR", help="Where the tables go, beside other runs.")
@master_option
@json_option
@pass_choices
def generate(choices: Choices, /, out: str, master: str | None, **asked: Any) -> None:
    """Generate the traces of a network, on Spark.

    What its daemons would have seen and done, for any number of relays. The same numbers give the same
    traces, on a laptop or a cluster. Attacks on subscribers need many topics: each is one trial.

    \b
    Example, both profiles, to see what the one hides from whom the other names:
      hushcast traces generate --nodes 200 --topics 60 --subscribers 1 --authors 1 \\
        --publications 600 --out /tmp/traces
      hushcast traces generate --nodes 200 --topics 60 --subscribers 1 --authors 1 \\
        --publications 600 --profile paper --run paper --out /tmp/traces
      hushcast analyze /tmp/traces --out /tmp/analysis
    """
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_cli.progress import person_watches, reporting
    from hushcast_cli.spark import check_spark, spark_session, told

    check_spark()
    from hushcast_analytics.generator.asked import Asked
    from hushcast_analytics.sources import make_room

    with told():
        wanted = Asked(**asked)
        make_room(wanted.run, out)
    with reporting() as progress, spark_session(master, progress) as spark:
        from hushcast_analytics.generator.generate import generate as make

        made = make(spark, wanted, out, progress, live=person_watches())
        counts = {
            "run": asked["run"],
            "observations": made.observations.count(),
            "truths": made.truths.count(),
        }
    if choices.json:
        write(json_line(counts))
    else:
        write(text_line(f"{counts['observations']} observations and {counts['truths']} truths in {out}"))
