"""`hushcast analyze` of a file of subscriptions: among how many does each filter hide?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from hushcast_cli.options import Choices
from hushcast_cli.output import json_line, text_line, write
from hushcast_cli.spark import spark_session
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.brokers.conditions import Condition

OF_FILTERS = ("ks", "conditions", "brokers", "cap", "spread")
"""The options that are of a file of subscriptions alone."""
_OF_TRACES = ("attacks", "topics_known", "baseline")
_COLLUDING = (0.1, 0.2, 0.3)  # of edge brokers
_LITTLE = 20_000_000  # bytes up to which Spark takes longer to plan than to work: some 100,000 lines


def whole_numbers(context: click.Context, parameter: click.Parameter, text: str) -> tuple[int, ...]:
    """Return numbers that were written with commas between them."""
    try:
        numbers = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        raise click.BadParameter("whole numbers with commas between them, as 3,5,10") from None
    if numbers[0] < 1:
        raise click.BadParameter("k is 1 or more")
    return numbers


def check_options(context: click.Context, is_file: bool) -> None:
    """Raise `click.UsageError` for an option that is of the other kind of source."""
    for parameter in context.command.params:
        name = parameter.name or ""
        if context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        if is_file and name in _OF_TRACES:
            raise click.UsageError(f"{parameter.opts[0]} is for traces, and this is a file", context)
        if not is_file and name in OF_FILTERS:
            raise click.UsageError(f"{parameter.opts[0]} is for a file of subscriptions", context)


def learn_k(
    choices: Choices,
    file: Path,
    out: Path,
    colluding: tuple[float, ...] | None,
    master: str | None,
    **asked: Any,
) -> None:
    """Learn k from a file of subscriptions, write the results to `out`, and tell them."""
    from hushcast_analytics.filters.analyze import Wanted, learn
    from hushcast_analytics.report.filters import counts, said
    from hushcast_cli.progress import person_watches, reporting

    conditions = tuple(map(Condition, dict.fromkeys(asked.pop("conditions")))) or tuple(Condition)
    wanted = Wanted(asked.pop("ks"), conditions, colluding or _COLLUDING, **asked)
    if wanted.spread > wanted.brokers:
        raise UsageError(
            f"--spread {wanted.spread} is more than the {wanted.brokers} edge brokers: see --brokers"
        )
    if file.stat().st_size == 0:
        raise UsageError(f"{file}: there are no subscriptions in it")
    out.mkdir(mode=0o700, parents=True, exist_ok=True)  # it names topics and conditions, private ones, too
    little = file.stat().st_size <= _LITTLE
    with reporting() as progress, spark_session(master, progress, little=little) as spark:
        summary = learn(spark, file, out, wanted, progress, live=person_watches())
    if choices.json:
        write(json_line(summary))
        return
    for line in (counts(summary), *said(summary), f"report: {out / 'report.html'}"):
        write(text_line(line))
