"""`hushcast lab analyze`: how anonymous was it?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushcast_cli import completion_values
from hushcast_cli.analysis.learn_k import learn_k, learns_k, whole_numbers
from hushcast_cli.analysis.spark import master_option
from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.options import FOLDER, json_option
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition

if TYPE_CHECKING:
    from hushcast_analytics.adversaries import Choice

COLLUDING = (0.05, 0.1, 0.2)
_positive = click.IntRange(min=1)


def _shares(context: click.Context, parameter: click.Parameter, text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        shares = tuple(dict.fromkeys(float(part) for part in text.split(",")))
    except ValueError:
        raise click.BadParameter("shares are numbers with commas between them, as 0.05,0.1") from None
    if not all(0 < share < 1 for share in shares):
        raise click.BadParameter("a share lies between 0 and 1")
    return shares


def _attacks(context: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse a name that there is not before Spark is loaded."""
    from hushcast_analytics.report.phrases import ATTACKS
    from hushcast_protocol.base.suggestions import did_you_mean

    for name in names:
        if ":" not in name and name not in ATTACKS:
            there_are = f": the attacks are {', '.join(ATTACKS)}, and module:function of your own"
            raise click.BadParameter(f"there is no {name}{did_you_mean(name, ATTACKS) or there_are}")
    return names


def _known(context: click.Context, parameter: click.Parameter, share: float) -> float:
    if not 0 <= share <= 1:
        raise click.BadParameter("a share lies between 0 and 1")
    return share


class _NamesAttacks(click.Command):
    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Tell which attacks there are, and what each tries."""
        from hushcast_analytics.report.phrases import ATTACKS

        with formatter.section("Attacks"):
            formatter.write_dl([(name, f"{words.tries}.") for name, words in ATTACKS.items()])


colluding_option = click.option(
    "--colluding",
    callback=_shares,
    metavar="F,F…",
    help="Shares of the relays that work together; 0.05,0.1,0.2 unless given. Of edge brokers 0.1,0.2,0.3.",
)

attack_option = click.option(
    "--attack",
    "attacks",
    multiple=True,
    metavar="NAME",
    callback=_attacks,
    shell_complete=completion_values.attacks,
    help="One of the attacks of `lab analyze`, or MODULE:FUNCTION of your own, several times; else all.",
)


@click.command(cls=_NamesAttacks)
@click.argument("traces")
@click.option("--out", type=FOLDER, required=True, metavar="DIR", help="For results.")
@colluding_option
@attack_option
@click.option(
    "--topics-known",
    type=float,
    default=1.0,
    show_default=True,
    callback=_known,
    metavar="F",
    help="Share of the topics whose names or links they know.",
)
@click.option(
    "--chosen",
    type=click.Choice(["random", "degree", "sybil"]),
    default="random",
    show_default=True,
    help="Which relays: drawn, those that most others exchange messages with, or one block of names.",
)
@click.option(
    "--colluding-users",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Subscribers of the overlay, drawn among all, who work with the relays.",
)
@click.option("--baseline", metavar="OTHER", help="Other traces, put beside these.")
@click.option(
    "--k",
    "ks",
    default="3,10,30",
    show_default=True,
    callback=whole_numbers,
    metavar="K,K…",
    help="How many subscribers are enough: of a file, or of brokers' traces.",
)
@click.option(
    "--condition",
    "conditions",
    multiple=True,
    type=click.Choice([str(condition) for condition in AnonymityCondition]),
    help="Beside --k: whose subscribers count, several times; else all.",
)
@click.option(
    "--brokers",
    type=click.IntRange(1, 1000),
    default=50,
    show_default=True,
    metavar="B",
    help="Beside --k: edge brokers that subscribers are dealt out to; of traces, unless given, those there.",
)
@click.option(
    "--cap",
    type=_positive,
    default=2,
    show_default=True,
    metavar="C",
    help="Beside --k: the most sources of an edge broker that count.",
)
@click.option(
    "--spread",
    type=_positive,
    default=3,
    show_default=True,
    metavar="S",
    help="Beside --k: from how many edge brokers sources have to be.",
)
@master_option
@click.option("--seed", type=int, default=1, show_default=True, metavar="S", help="Of who colludes.")
@json_option
@pass_choices
def analyze(
    choices: Choices,
    /,
    traces: str,
    out: Path,
    colluding: tuple[float, ...] | None,
    attacks: tuple[str, ...],
    topics_known: float,
    chosen: Choice,
    colluding_users: int,
    baseline: str | None,
    master: str | None,
    seed: int,
    **of_filters: Any,
) -> None:
    """Attack the traces of a test network, and measure how well people were hidden.

    TRACES holds what daemons of testnets wrote, or tables of `hushcast lab traces generate`. DIR gets
    report.html, summary.json and Parquet tables. Where TRACES is a file of subscriptions, as `lab
    filters levels` takes them, it is measured among how many subscribers each filter hides; with --k also
    where TRACES are of a network of brokers, for the subscriptions that edge brokers saw.

    \b
    Examples:
      hushcast lab analyze /tmp/hush/traces --out /tmp/analysis --colluding 0.1,0.2
      hushcast lab analyze subscriptions.jsonl --out /tmp/levels --k 5,10 --condition successor
      hushcast lab analyze /tmp/hush/traces --out /tmp/levels --k 3
    """
    from hushcast_cli.analysis.spark import check_spark, spark_session, told
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_cli.progress import person_watches, reporting

    learns = learns_k(click.get_current_context(), Path(traces).is_file())
    check_spark()
    if learns:
        learn_k(choices, traces, out, colluding, master, seed=seed, **of_filters)
        return
    with reporting() as progress:
        progress("looking at the traces")
        from hushcast_analytics.analysis import AnalysisPlan
        from hushcast_analytics.analysis import analyze as run
        from hushcast_analytics.analysis import chosen as played
        from hushcast_analytics.trace_sources import most_rows

        with told():
            wanted = AnalysisPlan(
                colluding or COLLUDING, played(attacks), seed, topics_known, chosen, colluding_users
            )
            rows = most_rows(source for source in (traces, baseline) if source is not None)
        out.mkdir(parents=True, exist_ok=True)
        with spark_session(master, progress, rows=rows) as spark:
            live = person_watches()
            summary = run(spark, traces, out, wanted, baseline, progress, command=choices.line, live=live)
    if choices.json:
        write(json_line(summary))
        return
    for line in told_in_full(summary):
        write(text_line(line))
    write(text_line(f"report: {out / 'report.html'}"))


def told_in_full(summary: dict[str, Any]) -> list[str]:
    """Return a line for each attack or party, with chance beside it, then the verdict as in the report."""
    from hushcast_analytics.report import brokers_section, central_section, lines_section
    from hushcast_analytics.report.phrases import counted, percent
    from hushcast_analytics.report.verdict import NOBODY, AttackStanding, GoalVerdict

    rows = [
        (
            row["attack"],
            row["profile"],
            f"{percent(row['colluding'])} collude",
            f"right in {percent(row['accuracy'])}",
            f"({percent(row['accuracy_low'])} to {percent(row['accuracy_high'])})",
            f"of {counted(row['trials'], 'trial')}",
            f"chance {percent(row['bound'])}",
        )
        for row in summary["attacks"]
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    said = [
        str(GoalVerdict(**{**each, "standing": AttackStanding(each["standing"])}))
        for each in summary["verdict"]
    ]
    to_do = ["To decide what these traces do not:", *summary["more"]] if summary["more"] else []
    said += [*central_section.said(summary["central"]), *brokers_section.said(summary["brokers"])]
    shown = [*(line.rstrip() for line in table), *central_section.lines(summary["central"])]
    shown += brokers_section.lines(summary["observers"]) + lines_section.lines(summary["lines"])
    return [*shown, *(said or [NOBODY]), *to_do]
