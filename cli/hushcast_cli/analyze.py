"""`hushcast analyze`: how anonymous was it?"""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.options import Choices, json_option, pass_choices
from hushcast_protocol.base.errors import UsageError


def _shares(context: click.Context, parameter: click.Parameter, text: str) -> tuple[float, ...]:
    try:
        shares = tuple(dict.fromkeys(float(part) for part in text.split(",")))
    except ValueError:
        raise click.BadParameter("shares are numbers with commas between them, as 0.05,0.1") from None
    if not all(0 < share < 1 for share in shares):
        raise click.BadParameter("a share lies between 0 and 1")
    return shares


def _known(context: click.Context, parameter: click.Parameter, share: float) -> float:
    if not 0 <= share <= 1:
        raise click.BadParameter("a share lies between 0 and 1")
    return share


@click.command()
@click.argument("traces")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    metavar="DIR",
    help="For results.",
)
@click.option(
    "--colluding",
    default="0.05,0.1,0.2",
    show_default=True,
    callback=_shares,
    metavar="F,F…",
    help="Shares of the relays that work together.",
)
@click.option(
    "--attack", "attacks", multiple=True, metavar="NAME", help="An attack, several times; else all."
)
@click.option(
    "--topics-known",
    type=float,
    default=1.0,
    show_default=True,
    callback=_known,
    metavar="F",
    help="Share of the topics whose names or links they know.",
)
@click.option("--baseline", metavar="OTHER", help="Other traces, put beside these.")
@click.option("--master", metavar="URL", help="Spark's master; all cores of this machine unless given.")
@click.option("--seed", type=int, default=1, show_default=True, metavar="S", help="Of who colludes.")
@json_option
@pass_choices
def analyze(
    choices: Choices,
    traces: str,
    out: Path,
    colluding: tuple[float, ...],
    attacks: tuple[str, ...],
    topics_known: float,
    baseline: str | None,
    master: str | None,
    seed: int,
) -> None:
    """Attack the traces of a test network, and measure how well people were hidden.

    TRACES holds what daemons of testnets wrote, or tables of `hushcast traces generate`. DIR gets
    report.html, summary.json and Parquet tables.

    \b
    Example:
      hushcast analyze /tmp/hush/traces --out /tmp/analysis --colluding 0.1,0.2
    """
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_cli.progress import reporting
    from hushcast_cli.spark import check_spark, spark_session

    check_spark()
    from hushcast_analytics.analyze import Wanted, chosen
    from hushcast_analytics.analyze import analyze as run

    try:
        wanted = Wanted(colluding, chosen(attacks), seed, topics_known)
    except KeyError as error:
        raise UsageError(f"--attack {error.args[0]}: the attacks are {', '.join(chosen(()))}") from None
    with reporting() as progress, spark_session(master) as spark:
        summary = run(spark, traces, out, wanted, baseline, progress)
    if choices.json:
        write(json_line(summary))
        return
    width = max((len(row["attack"]) for row in summary["attacks"]), default=0)
    for row in summary["attacks"]:
        named = f"{row['accuracy']:8.2%}  ({row['accuracy_low']:.2%} to {row['accuracy_high']:.2%})"
        who = f"{row['attack'].ljust(width)}  {row['profile']}  {row['colluding']:.0%}"
        write(text_line(f"{who}  {named}  bound {row['bound']:.2%}  {row['trials']} trials"))
    write(text_line(f"report: {out / 'report.html'}"))
