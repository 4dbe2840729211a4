"""`hushcast lab traces`: synthetic traces, and shards that are only drawn."""

from __future__ import annotations

from typing import Any

import click

from hushcast_cli.analysis.spark import master_option
from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.command_groups import CommandGroup
from hushcast_cli.options import depth_option, json_option, number_option, profile_option, seed_option

_positive = click.IntRange(min=1)
_OF_TRACES = ("nodes", "subscribers", "publications", "out")
"""Traces need them."""
_BESIDE_RELAYS = {"relays", "shards", "days", "colluding", "up", "down", "seed", "master", "json"}
"""All that says anything of shards that are only drawn."""


@click.group(cls=CommandGroup, short_help="Make traces to analyze, of networks larger than a machine runs.")
@json_option
def traces() -> None:
    """Make traces for `hushcast lab analyze`, of networks larger than a machine can run."""


def _check_kind(of_shards: dict[str, Any]) -> None:
    """Raise `UsageError` unless what is needed for traces, or for shards, is given, and not both."""
    context = click.get_current_context()
    given = {
        name
        for name in context.params
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    }
    if of_shards["relays"] is None:
        if stray := [name for name, value in of_shards.items() if value is not None]:
            raise click.UsageError(f"--{stray[0]} is for a network of shards: give --relays, too", context)
        needed: tuple[str, ...] = _OF_TRACES
    else:
        if stray := sorted(given - _BESIDE_RELAYS):
            raise click.UsageError(
                f"--{stray[0]} is for traces, and --relays only draws shards: leave one away", context
            )
        needed = ("shards",)
    for parameter in context.command.params:
        if parameter.name in needed and parameter.name not in given:
            raise click.MissingParameter(ctx=context, param=parameter)


@traces.command()
@click.option("--nodes", type=_positive, metavar="N", help="Relays.")
@click.option("--subscribers", type=_positive, metavar="K", help="Subscribers on each topic.")
@click.option("--topics", type=_positive, default=1, show_default=True, metavar="T", help="Topics.")
@number_option("--publications", 0, metavar="P", help="Messages published, on all topics together.")
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
@click.option(
    "--hosts",
    type=click.IntRange(0, 2),
    default=0,
    metavar="H",
    help="Hosts of each subscription's box; then only what they see is made. Mailboxes unless given.",
)
@seed_option
@click.option("--run", default="generated", show_default=True, metavar="NAME", help="What the run is called.")
@click.option("--out", metavar="DIR", help="Where the tables go, beside other runs.")
@click.option(
    "--relays", type=_positive, metavar="N", help="Instead of traces: relays of a network of many shards."
)
@click.option("--shards", type=_positive, metavar="S", help="With --relays: how many, a power of two.")
@click.option("--days", type=_positive, metavar="D", help="With --relays: days; 1 unless given.")
@click.option(
    "--colluding",
    type=click.FloatRange(0, 1),
    metavar="C",
    help="With --relays: share of the relays that collude; 0.1 unless given.",
)
@master_option
@json_option
@pass_choices
def generate(choices: Choices, /, out: str | None, master: str | None, **asked: Any) -> None:
    """Generate the traces of a network, on Spark; or only draw the shards of a large one.

    What its daemons would have seen and done, for any number of relays. The same numbers give the same
    traces, on a laptop or a cluster. Attacks on subscribers need many topics: each is one trial.

    \b
    Example, both profiles, to see what the one hides from whom the other names:
      hushcast lab traces generate --nodes 200 --topics 60 --subscribers 1 --authors 1 \\
        --publications 600 --out /tmp/traces
      hushcast lab traces generate --nodes 200 --topics 60 --subscribers 1 --authors 1 \\
        --publications 600 --profile paper --run paper --out /tmp/traces
      hushcast lab analyze /tmp/traces --out /tmp/analysis

    \b
    Example, which relays that subscribe their hosts name, in two weeks:
      hushcast lab traces generate --nodes 500 --clients 0 --topics 300 --subscribers 1 \
        --publications 0 --epochs 336 --down 8 --hosts 2 --out /tmp/boxes
      hushcast lab analyze /tmp/boxes --out /tmp/analysis --attack box-presence --colluding 0.1,0.2

    \b
    Example, how many colluders come together in one shard of a million relays:
      hushcast lab traces generate --relays 1000000 --shards 2048 --days 30 --colluding 0.1
    """
    of_shards = {name: asked.pop(name) for name in ("relays", "shards", "days", "colluding")}
    _check_kind(of_shards)
    if of_shards["relays"] is not None:
        from hushcast_cli.analysis.shard_figures import draw

        moving = {"up": asked["up"], "down": asked["down"]} if asked["down"] else None
        draw(of_shards | {"seed": asked["seed"]}, moving, master, choices.json)
        return
    assert out is not None
    from hushcast_cli.analysis.spark import check_spark, spark_session, told
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_cli.progress import person_watches, reporting

    check_spark()
    from hushcast_analytics.generator.scenario import GeneratorScenario
    from hushcast_analytics.trace_sources import make_room

    with told():
        wanted = GeneratorScenario(**asked)
        make_room(wanted.run, out)
    with reporting() as progress, spark_session(master, progress) as spark:
        from hushcast_analytics.generator.generator_jobs import generate as make

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
