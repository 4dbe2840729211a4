"""`hushcast lab purpose`: whether data may be used for something, by rules in a file."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.command_groups import CommandGroup
from hushcast_cli.options import FILE, json_option


@click.group("purpose", cls=CommandGroup)
@json_option
def purpose_rules() -> None:
    """Try rules that say what messages may be used for, without a gateway."""


@purpose_rules.command()
@click.argument("rules", type=FILE, metavar="RULES")
@click.argument("questions", type=FILE, metavar="QUESTIONS")
@json_option
@pass_choices
def decide(choices: Choices, rules: Path, questions: Path) -> None:
    """Answer each of QUESTIONS by the RULES: allowed or not, and because of whose reservation.

    RULES is a JSON object: {"vocabulary": [PURPOSES], "strict": false, "reservations": [{"owner": "fleet",
    "filter": "cars/#", "aip": ["operations"], "pip": []}]}: what is allowed (aip) and prohibited (pip) for
    the topics of a filter. Without a vocabulary it is the shipped one. With `strict`, what nobody reserved
    is allowed to nobody. Each line of QUESTIONS, with `-` of standard input, is one: {"topic":
    "cars/7/position", "purpose": "operations/billing"}. A topic with wildcards asks for all of its topics.

    \b
    Example:
      hushcast lab purpose decide rules.json questions.jsonl
    """
    from hushcast_cli.purposes.rule_questions import tell

    tell(rules, questions, choices.json)


@purpose_rules.command("effective")
@click.argument("rules", type=FILE, metavar="RULES")
@click.argument("topic", metavar="TOPIC")
@json_option
@pass_choices
def effective_command(choices: Choices, rules: Path, topic: str) -> None:
    """List what a TOPIC, or all topics of a filter, may be used for by the RULES.

    RULES are as `lab purpose decide` reads them.

    \b
    Example:
      hushcast lab purpose effective rules.json 'cars/+/position'
    """
    from hushcast_cli.purposes.rule_questions import tell_effective

    tell_effective(rules, topic, choices.json)


@purpose_rules.command()
@click.option("--file", "file", type=FILE, metavar="F", help="One's own, one purpose a line.")
@json_option
@pass_choices
def vocabulary(choices: Choices, file: Path | None) -> None:
    """Show the purposes that may be named: those of the W3C's Data Privacy Vocabulary 2.0, or of F.

    In F, as in the shipped one, each line is a purpose, `operations/billing`, from the general to the
    special; `#` begins a comment.

    \b
    Example:
      hushcast lab purpose vocabulary --file purposes.txt
    """
    from hushcast_cli.purposes.rule_questions import tell_vocabulary

    tell_vocabulary(file, choices.json)
