"""`hushcast lab analyze` of subscriptions, of a file or of brokers' traces: among how many does each hide?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from hushcast_cli.analysis.spark import spark_session, told
from hushcast_cli.choices import Choices
from hushcast_cli.output import json_line, text_line, write
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition

OF_FILTERS = ("ks", "conditions", "brokers", "cap", "spread")
"""The options about levels of anonymity alone."""
_OF_ATTACKS = ("attacks", "topics_known", "chosen", "colluding_users", "baseline")
_COLLUDING = (0.1, 0.2, 0.3)  # of edge brokers
_ROW_BYTES = 40  # of a file, a fifth of a subscription: one takes as long as several rows of traces


def whole_numbers(context: click.Context, parameter: click.Parameter, text: str) -> tuple[int, ...]:
    """Return numbers that were written with commas between them."""
    try:
        numbers = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        raise click.BadParameter("whole numbers with commas between them, as 3,5,10") from None
    if numbers[0] < 1:
        raise click.BadParameter("k is 1 or more")
    return numbers


def learns_k(context: click.Context, is_file: bool) -> bool:
    """Tell whether k is to be learnt: of a file, or of traces with --k.

    Raises `click.UsageError` for an option that does not go with that.
    """
    given = [one for one in context.command.params if _is_given(context, one.name or "")]
    learns = is_file or any(one.name == "ks" for one in given)
    for one in given:
        if is_file and one.name in _OF_ATTACKS:
            raise click.UsageError(f"{one.opts[0]} is for traces, and this is a file", context)
        if learns and one.name in _OF_ATTACKS:
            raise click.UsageError(f"{one.opts[0]} is about attacks, which --k leaves out", context)
        if not learns and one.name in OF_FILTERS:
            raise click.UsageError(
                f"{one.opts[0]} is for a file of subscriptions, or for traces of brokers with --k", context
            )
    return learns


def _is_given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def learn_k(
    choices: Choices,
    source: str,
    out: Path,
    colluding: tuple[float, ...] | None,
    master: str | None,
    **asked: Any,
) -> None:
    """Learn k from a file of subscriptions or from traces, write the results to `out`, and tell them."""
    from hushcast_analytics.filters.analysis import LevelsPlan, learn, learn_from_traces
    from hushcast_analytics.report.filters_page import counts, said
    from hushcast_cli.progress import person_watches, reporting

    file = Path(source)
    if not file.is_file() and not _is_given(click.get_current_context(), "brokers"):
        asked["brokers"] = None  # traces tell who is where
    conditions = tuple(map(AnonymityCondition, dict.fromkeys(asked.pop("conditions")))) or tuple(
        AnonymityCondition
    )
    wanted = LevelsPlan(asked.pop("ks"), conditions, colluding or _COLLUDING, **asked)
    if wanted.brokers is not None and wanted.spread > wanted.brokers:
        raise UsageError(
            f"--spread {wanted.spread} is more than the {wanted.brokers} edge brokers: see --brokers"
        )
    rows = _rows_of(source)
    out.mkdir(mode=0o700, parents=True, exist_ok=True)  # it names topics and conditions, private ones, too
    with reporting() as progress, spark_session(master, progress, rows=rows) as spark:
        how: dict[str, Any] = {"command": choices.line, "live": person_watches()}
        if file.is_file():
            summary = learn(spark, file, out, wanted, progress, **how)
        else:
            summary = learn_from_traces(spark, source, out, wanted, progress, **how)
    if choices.json:
        write(json_line(summary))
        return
    for line in (counts(summary), *said(summary), f"report: {out / 'report.html'}"):
        write(text_line(line))


def _rows_of(source: str) -> int | None:
    """Return about how many rows there are to read; raise `UsageError` if there is nothing."""
    from hushcast_analytics.trace_sources import look

    file = Path(source)
    if not file.is_file():
        with told():
            return look(source)
    if file.stat().st_size == 0:
        raise UsageError(f"{file}: there are no subscriptions in it")
    return file.stat().st_size // _ROW_BYTES
