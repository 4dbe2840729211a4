"""`hushcast topic`: makes topics and explains their links."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.command_groups import CommandGroup
from hushcast_cli.options import check_one_topic, json_option, link_file_option

if TYPE_CHECKING:
    from hushcast_protocol.content.attributes import Attribute
    from hushcast_protocol.content.topics import Topic


@click.group(cls=CommandGroup)
@json_option
def topic() -> None:
    """Make topics, and see what a link holds."""


@topic.command()
@click.argument("name")
@click.option(
    "--attribute",
    "attributes",
    multiple=True,
    metavar="SPEC",
    help="An attribute of its messages: `kind` is a label, `lat:-90..90:0.001` a number with its range and "
    "resolution. May be repeated.",
)
@click.option("--private", is_flag=True, help="Only who has the link can find or read the topic.")
@click.option(
    "--width",
    type=click.IntRange(0, 4),
    default=0,
    metavar="W",
    help="0 to 4; for topics of more than 10,000 subscribers, in networks of shards: each of these draws one "
    "of 2^W shards, and each message is dropped in all of them. With another width it is another topic.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the link into this new file, for your eyes alone, and not on the screen.",
)
@json_option
@pass_choices
def new(
    choices: Choices, name: str, attributes: tuple[str, ...], private: bool, width: int, output: Path | None
) -> None:
    """Make a link to the topic NAME.

    Whoever is to publish or subscribe needs the same link. A private topic's holds a random secret: made
    twice, it is two topics. No daemon is asked.

    \b
    Examples:
      hushcast topic new fires --attribute kind --attribute lat:-90..90:0.001
      hushcast topic new family --private --output family.link
    """
    import os

    from hushcast import keys
    from hushcast_cli.messages.topic_arguments import is_link
    from hushcast_cli.output import json_line, write
    from hushcast_protocol.base.crypto.secrets import TopicSecret
    from hushcast_protocol.base.errors import UsageError
    from hushcast_protocol.content.topics import make_topic, write_link

    if is_link(name):
        raise UsageError("NAME is a link already: `hushcast topic show` explains it")
    made = make_topic(name, attributes, TopicSecret.draw(os.urandom) if private else None, width)
    link = write_link(made)
    if output is not None:
        keys.write_link(output, link)
    if choices.json:
        told = {"topic": made.name}
        told |= {"link": link} if output is None else {"output": str(output)}
        write(json_line(told | {"private": private, "width": width, "attributes": _described(made)}))
    elif output is None:
        write(link.encode() + b"\n")


@topic.command()
@click.argument("link", required=False)
@link_file_option
@json_option
@pass_choices
def show(choices: Choices, link: str | None, link_file: Path | None) -> None:
    """Explain LINK: the topic's name, whether it is private, its attributes, what its messages carry.

    The secret of a private topic is not shown. No daemon is asked.

    \b
    Examples:
      hushcast topic show --link-file family.link
      wl-paste | hushcast topic show --link-file -
    """
    check_one_topic(link, link_file, "LINK")
    from hushcast_cli.daemon_calls import run
    from hushcast_cli.messages.topic_arguments import choose_topic, is_link
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_protocol.base.errors import UsageError
    from hushcast_protocol.content.topics import LINK_SCHEME

    if link is not None and not is_link(link):
        raise UsageError(f"LINK is no link, which begins with {LINK_SCHEME!r}: a plain text is an open topic")
    shown = run(lambda: choose_topic(link, link_file)).topic
    private = shown.secret is not None
    tokens = _tokens(shown)
    if choices.json:
        told = {"topic": shown.name, "private": private, "width": shown.width}
        write(json_line(told | {"attributes": _described(shown), "tokens": tokens}))
        return
    kind = (
        "private: only who has the link can find or read it" if private else "open: its name can be guessed"
    )
    write(text_line(f"topic       {shown.name}"))
    write(text_line(f"kind        {kind}"))
    if shown.width:
        write(text_line(f"width       {shown.width}: up to {2**shown.width} shards on days that have shards"))
    for attribute in shown.attributes:
        write(text_line(f"attribute   {_readable(attribute)}"))
    write(text_line(f"a message   carries {tokens} tokens with all attributes set, padding included"))


def _described(topic: Topic) -> list[dict[str, Any]]:
    from hushcast_protocol.content.attributes import Label, as_json

    return [
        {"name": attribute.name, "kind": "label"}
        if isinstance(attribute, Label)
        else {
            "name": attribute.name,
            "kind": "number",
            "low": as_json(attribute, 0),
            "high": as_json(attribute, attribute.last),
            "resolution": float(attribute.resolution)
            if attribute.resolution % 1
            else int(attribute.resolution),
            "steps": attribute.last,
        }
        for attribute in topic.attributes
    ]


def _readable(attribute: Attribute) -> str:
    from hushcast_protocol.content.attributes import Label

    if isinstance(attribute, Label):
        return f"{attribute.name}: a label"
    return (
        f"{attribute.name}: a number from {attribute.low:f} to {attribute.high:f},"
        f" rounded to {attribute.resolution:f} ({attribute.last:,} steps)"
    )


def _tokens(topic: Topic) -> int:
    """Return how many tokens a message carries that sets all attributes of a topic."""
    import os

    from hushcast_protocol.base.crypto.secrets import TopicKey
    from hushcast_protocol.content.attributes import Label, Values
    from hushcast_protocol.content.tokens import published_tokens

    values: Values = {
        attribute.name: "x" if isinstance(attribute, Label) else 0 for attribute in topic.attributes
    }
    return len(published_tokens(TopicKey.draw(os.urandom), topic, values, os.urandom))
