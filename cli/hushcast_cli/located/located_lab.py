"""`hushcast lab located`: a located feed by files alone, without daemons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hushcast_cli.analysis.spark import master_option
from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.command_groups import CommandGroup
from hushcast_cli.located.batch_map import draw_map
from hushcast_cli.located.figures import figures
from hushcast_cli.options import FILE, FOLDER, json_option, number_option


@click.group(
    "located", cls=CommandGroup, short_help="Answer subscriptions to a located feed, and check answers."
)
@json_option
def located_lab() -> None:
    """Answer subscriptions to a located feed, check, measure and draw answers."""


@located_lab.command("match")
@click.option("--batch", "folder", type=FOLDER, required=True, metavar="DIR", help="The feed's batches.")
@click.option("--subscriptions", type=FILE, required=True, metavar="FILE", help="One JSON object a line.")
@click.option("--out", type=FOLDER, required=True, metavar="ANSWERS", help="Where answers go.")
@number_option("--number", 1, help="Which batch. Default: the newest in DIR.")
@click.option(
    "--no-proofs", "alone", is_flag=True, help="Only list who wants what, in ANSWERS/matches.jsonl."
)
@click.option(
    "--engine",
    type=click.Choice(["local", "spark"]),
    default="local",
    show_default=True,
    help="What matches: this process, or Spark.",
)
@master_option
@json_option
@pass_choices
def match(choices: Choices, /, **asked: Any) -> None:
    """Answer subscriptions for a batch, each in a file ANSWERS/<id>.answer, with its proof.

    Each line is a subscription: {"id": "a", "lat": 60.17, "lon": 24.94, "keywords": ["shoe"], "alpha": 0.5,
    "threshold": 0.7}. A subscription that wants nothing of the batch gets an answer, too: it proves that.
    With --no-proofs there are no answers, but a list of all subscriptions and the messages that they want.
    With --engine spark they may be more than one machine holds, FILE may be Parquet (FILE.parquet), and lists
    go into files in ANSWERS/matches.

    \b
    Examples:
      hushcast lab located match --batch batches --subscriptions subscriptions.jsonl --out answers
      hushcast lab located match --batch batches --subscriptions subscriptions.jsonl --out answers
        --engine spark --master spark://HOST:7077
    """
    from hushcast_cli.located.batch_match import MatchOptions, tell

    tell(choices, MatchOptions(**asked))


@located_lab.command("verify")
@click.argument("answer", type=FILE, metavar="ANSWER")
@click.option("--owner", required=True, metavar="PUBLIC", help="The owner's public key.")
@click.option(
    "--subscription", required=True, metavar="JSON", help="What was asked for, as `match` reads it."
)
@click.option("--after", type=FILE, metavar="ANSWER", help="The answer before it, which held.")
@json_option
@pass_choices
def verify_command(choices: Choices, answer: Path, owner: str, subscription: str, after: Path | None) -> None:
    """Check an answer, and print its messages.

    It holds if every message is as the owner signed it, and none that the subscription wants is missing.
    With --after it must also be of the batch right after that of another answer: nothing else tells a batch
    that was left out, or one that is long over. An answer that does not hold ends with exit code 4.

    \b
    Example:
      hushcast lab located verify --owner PUBLIC --subscription '{"lat": 60.17, …}' answers/a.answer
    """
    from hushcast_cli.located.answer_check import tell

    tell(choices, answer, owner, subscription, after)


located_lab.add_command(figures)
located_lab.add_command(draw_map)
