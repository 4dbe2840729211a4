"""`hushcast lab job`: an analysis that is made again and again, each time beside the last."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.analysis.analyze import COLLUDING, attack_option, colluding_option
from hushcast_cli.analysis.spark import master_option
from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.options import FOLDER, json_option, number_option

_KEPT = 30  # reports: a month of days


@click.command()
@click.argument("traces")
@click.option("--out", type=FOLDER, required=True, metavar="DIR", help="For dated reports.")
@colluding_option
@attack_option
@click.option("--seed", type=int, default=1, show_default=True, metavar="S", help="Of who colludes.")
@number_option("--keep", 2, default=_KEPT, help="How many reports stay.")
@master_option
@json_option
@pass_choices
def job(
    choices: Choices,
    /,
    traces: str,
    out: Path,
    colluding: tuple[float, ...] | None,
    attacks: tuple[str, ...],
    seed: int,
    keep: int,
    master: str | None,
) -> None:
    """Analyse traces that several test networks gather, and tell what changed.

    TRACES has a directory for each network, of this machine or of others, or is a path that Spark reads. DIR
    gets a directory named after the time with what `hushcast lab analyze` writes, and changes.txt: what is
    another than in the report before.

    \b
    Example:
      hushcast lab job /srv/traces --out /srv/reports --colluding 0.1
    """
    from hushcast_cli.analysis.spark import check_spark, spark_session, told
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_cli.progress import person_watches, reporting

    check_spark()
    with reporting() as progress:
        progress("looking at the traces")
        from hushcast_analytics.analysis import AnalysisPlan, chosen
        from hushcast_analytics.dated_reports import add_report
        from hushcast_analytics.trace_sources import look

        with told():
            wanted = AnalysisPlan(colluding or COLLUDING, chosen(attacks), seed)
            rows = look(traces)
        out.mkdir(parents=True, exist_ok=True)
        with spark_session(master, progress, rows=rows) as spark:
            live = person_watches()
            made = add_report(spark, traces, out, wanted, keep, progress, command=choices.line, live=live)
    if choices.json:
        write(json_line({"report": str(made.place), "changes": made.changes}))
        return
    for line in made.changes:
        write(text_line(line))
    write(text_line(f"report: {made.place / 'report.html'}"))
