"""`hushcast publish`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from hushcast_cli import suggestions
from hushcast_cli.options import (
    Choices,
    check_one_topic,
    daemon_options,
    link_file_option,
    pass_choices,
    timeout_option,
)

LINES_AT_ONCE = 32  # lines whose receipts are awaited; a daemon takes 256 connections

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    import trio

    from hushcast.words import Publish, Published


@click.command()
@click.argument("topic", required=False, shell_complete=suggestions.topics)
@click.argument("payload", required=False)
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    metavar="F",
    help="Publish the bytes of this file.",
)
@click.option("--lines", is_flag=True, help="Publish each line of it, or of standard input, as a message.")
@link_file_option
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set an attribute of the topic, `lat=60.17`. May be repeated.",
)
@click.option(
    "--as",
    "key_file",
    type=click.Path(path_type=Path),
    metavar="KEYFILE",
    help="Sign as the author whose key `hushcast key new` wrote into this file.",
)
@click.option(
    "--no-wait",
    is_flag=True,
    help="Return as soon as the message is on the daemon's disk; the daemon goes on until a relay takes it.",
)
@timeout_option
@daemon_options
@pass_choices
def publish(
    choices: Choices,
    topic: str | None,
    payload: str | None,
    file: Path | None,
    lines: bool,
    link_file: Path | None,
    settings: tuple[str, ...],
    key_file: Path | None,
    no_wait: bool,
    timeout: float | None,
) -> None:
    """Publish PAYLOAD on TOPIC, a text or a link.

    Returns once a relay has given its receipt. If none does in time, the message stays in the daemon's outbox
    and is tried again until its day is over: do not publish it again. Without PAYLOAD, or with `-`, the bytes
    of standard input are published; `''` is the empty message. A payload has at most 256 KiB. With --lines
    each line is a message, in the outbox before the next line is read. With --link-file there is no TOPIC.

    \b
    Examples:
      hushcast publish news 'it rains'
      hushcast publish pictures --file cat.png
      echo it rains | hushcast publish news --no-wait
      tail -f log | hushcast publish log --lines
      hushcast publish temperatures -- -5
      hushcast publish --link-file fires.link --set lat=60.17 --set kind=fire 'smoke'
    """
    from hushcast_cli.links import is_link

    if link_file is not None:
        if payload is not None or (topic is not None and is_link(topic)):
            raise click.UsageError("give TOPIC or --link-file, not both", click.get_current_context())
        topic, payload = None, topic
    check_one_topic(topic, link_file)
    _check_one_payload(payload, file, link_file, lines)
    from hushcast_cli.asking import run
    from hushcast_cli.exits import TimedOut

    told: list[Published] = []  # how far the publication has come

    async def work() -> None:
        from hushcast_cli.payload import read_lines, read_payload

        request = await _request(topic, link_file, settings, key_file, no_wait)
        if lines:
            await _hand_in_lines(choices, read_lines(file), request)
        else:
            await _hand_in(choices, request(await read_payload(payload, file)), told)

    try:
        run(work, timeout)
    except TimedOut as error:
        raise TimedOut(f"{error}: {_whereabouts(told)}") from None
    finally:
        for done in told[-1:]:  # also of a publication that only waits in the outbox a program learns the id
            _tell(choices, done, no_wait)


async def _request(
    topic: str | None, link_file: Path | None, settings: tuple[str, ...], key_file: Path | None, no_wait: bool
) -> Callable[[bytes], Publish]:
    """Return what makes a request of a payload; raise `UsageError` where the rest of it is wrong."""
    from hushcast.words import Publish
    from hushcast_cli.key import read_key
    from hushcast_cli.links import choose_topic
    from hushcast_protocol.content.topics import parse_values

    chosen = await choose_topic(topic, link_file)
    parse_values(chosen.topic, settings)
    author = read_key(key_file).reveal() if key_file is not None else None
    tell: Literal["queued", "each"] = "queued" if no_wait else "each"
    return lambda payload: Publish(chosen.text, payload, list(settings), author, tell)


def _check_one_payload(payload: str | None, file: Path | None, link_file: Path | None, lines: bool) -> None:
    usage = click.get_current_context()
    if lines and payload not in (None, "-"):
        raise click.UsageError("--lines reads standard input or --file: PAYLOAD is too much", usage)
    if payload is not None and file is not None:
        raise click.UsageError("give PAYLOAD or --file, not both", usage)
    if str(link_file) == "-" and (payload if file is None else str(file)) in (None, "-"):
        raise click.UsageError("standard input holds the link: give PAYLOAD or --file F", usage)


async def _hand_in_lines(
    choices: Choices, lines: AsyncIterator[bytes], request: Callable[[bytes], Publish]
) -> None:
    """Publish each line as soon as the one before is in the outbox; print what became of each."""
    import trio

    room = trio.CapacityLimiter(LINES_AT_ONCE)

    async def publish_line(line: bytes, task_status: trio.TaskStatus[None]) -> None:
        async with room:
            told: list[Published] = []
            await _hand_in(choices, request(line), told, task_status.started)
            _tell(choices, told[-1], told[-1].receipt == "queued")

    async with trio.open_nursery() as nursery:
        async for line in lines:
            await nursery.start(publish_line, line)


async def _hand_in(
    choices: Choices, request: Publish, told: list[Published], queued: Callable[[], None] = lambda: None
) -> None:
    """Ask the daemon, and note in `told` how far it says that the publication has come."""
    from hushcast.conversation import NoDaemon, ask
    from hushcast.words import Published
    from hushcast_cli.asking import daemon_socket, expect
    from hushcast_cli.progress import shown_when_slow
    from hushcast_protocol.base.errors import Refusal

    async with ask(daemon_socket(choices), request) as conversation:
        told.append(await expect(conversation, Published))
        queued()
        if request.tell == "queued":
            return
        async with shown_when_slow("waiting for a relay's receipt"):
            try:
                told.append(await expect(conversation, Published))
            except NoDaemon as error:
                raise NoDaemon(f"{error}: {_whereabouts(told)}") from None
            except Refusal:  # somebody took it back
                told.clear()
                raise


def _tell(choices: Choices, done: Published, no_wait: bool) -> None:
    from hushcast_cli.output import json_line, text_line, write

    if choices.json:
        write(json_line({"id": done.id, "topic": done.topic, "receipt": done.receipt}))
    elif done.receipt == "accepted" or no_wait:
        write(text_line(f"{done.receipt} {done.id}"))


def _whereabouts(told: list[Published]) -> str:
    if told:
        return f"the message {told[0].id} stays in the outbox, so do not publish it again"
    return "no receipt yet, though the message may be on its way"
