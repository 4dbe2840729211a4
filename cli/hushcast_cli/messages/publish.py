"""`hushcast publish`."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hushcast_cli import completion_values
from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.options import (
    check_one_topic,
    daemon_options,
    link_file_option,
    open_option,
    timeout_option,
)
from hushcast_cli.purposes.purpose_options import allowed_options

LINES_AT_ONCE = 256  # lines whose receipts are awaited; a connection carries 512 requests

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    import trio

    from hushcast.daemon import Daemon
    from hushcast.descriptions import Publication
    from hushcast.purposes.keys import Allowed

    Publish = Callable[[Daemon, bytes], Awaitable[Publication]]


@click.command(short_help="Publish a message on a topic.")
@click.argument("topic", required=False, shell_complete=completion_values.topics)
@click.argument("payload", required=False)
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    metavar="F",
    help="Publish the bytes of this file.",
)
@click.option("--lines", is_flag=True, help="Publish each line of it, or of standard input, as a message.")
@link_file_option
@open_option
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
    help="Sign as the author whose key `hushcast admin key new` wrote into this file.",
)
@click.option(
    "--no-wait",
    is_flag=True,
    help="Return as soon as the message is on the daemon's disk; the daemon goes on until a relay takes it.",
)
@click.option(
    "--at-once",
    is_flag=True,
    help="Under cover: in the next round, not held for up to a day. It shows that its author is there now.",
)
@allowed_options
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
    is_open: bool,
    settings: tuple[str, ...],
    key_file: Path | None,
    no_wait: bool,
    at_once: bool,
    allowed: Allowed | None,
    timeout: float | None,
) -> None:
    """Publish PAYLOAD on TOPIC, a text, a link, or the handle of a subscription to it.

    Returns once a relay has given its receipt. If none does in time, the message stays in the daemon's outbox
    and is tried again for 14 days, a signed one until its day is over: do not publish it again. Without
    PAYLOAD, or with `-`, the bytes of standard input are published; `''` is the empty message. A payload has
    at most 256 KiB. With --lines each line is a message, in the outbox before the next line is read. With
    --link-file there is no TOPIC. Under cover it does not wait, but says when the message goes: held for up
    to a day, unless with --at-once (what that costs: docs/cover.md). A payload has at most 64 KiB then.

    \b
    Examples:
      hushcast publish news 'it rains'
      hushcast publish pictures --file cat.png
      echo it rains | hushcast publish news --no-wait
      tail -f log | hushcast publish log --lines
      hushcast publish temperatures -- -5
      hushcast publish --link-file fires.link --set lat=60.17 --set kind=fire 'smoke'
      hushcast publish --link-file car.link --for operations --vocabulary fleet.vocabulary 60.17,24.94
    """
    topic, payload = _one_topic(topic, payload, link_file)
    _check_one_payload(payload, file, link_file, lines)
    from hushcast.errors import TimedOut
    from hushcast_cli.daemon_calls import daemon, run

    told = _Told(choices, no_wait)

    async def work() -> None:
        from hushcast_cli.payload import read_lines, read_payload

        hand_in = await _chosen(topic, link_file, is_open, settings, key_file, no_wait, at_once, allowed)
        if lines:
            async with daemon(choices) as one:
                await _publish_lines(one, read_lines(file), hand_in, told)
        else:
            data = await read_payload(payload, file)
            async with daemon(choices) as one:
                await _publish(one, data, hand_in, told)

    try:
        run(work, timeout)
    except TimedOut as error:
        raise TimedOut(f"{error}: {told.whereabouts}") from None
    finally:
        told.tell()  # also of a publication that only waits in the outbox a program learns the id


class _Told:
    """How far the last publication has come."""

    def __init__(self, choices: Choices, no_wait: bool) -> None:
        self._choices = choices
        self.no_wait = no_wait
        self.queued: Publication | None = None
        self._accepted = False
        self._lines_left = 0  # in the outbox, where each line is a publication of its own

    @contextmanager
    def line(self) -> Iterator[_Told]:
        """Yield one for the publication of a line; it is told at the end, however that comes."""
        one = _Told(self._choices, self.no_wait)
        try:
            yield one
        finally:
            self._lines_left += one.queued is not None and not one._accepted
            one.tell()

    def accepted(self) -> None:
        """Note that a relay has taken it."""
        self._accepted = True

    @property
    def whereabouts(self) -> str:
        """Where the message is, for who is not told that it was accepted."""
        if self.queued is not None:
            return f"the message {self.queued.id} stays in the outbox, so do not publish it again"
        if self._lines_left:
            from hushcast_runtime.wording import counted

            left, them = self._lines_left, "it" if self._lines_left == 1 else "them"
            stay = counted(left, "message stays", "messages stay")
            return f"{stay} in the outbox, so do not publish {them} again"
        return "no receipt yet, though the message may be on its way"

    def tell(self) -> None:
        """Print it."""
        from hushcast_cli.output import json_line, text_line, write

        if self.queued is None:
            return
        receipt = "accepted" if self._accepted else "queued"
        if self._choices.json:
            write(json_line({"id": self.queued.id, "topic": self.queued.topic, "receipt": receipt}))
        elif self._accepted or self.no_wait or self.queued.outlook:
            write(text_line(f"{receipt} {self.queued.id}"))


async def _chosen(
    topic: str | None,
    link_file: Path | None,
    is_open: bool,
    settings: tuple[str, ...],
    key_file: Path | None,
    no_wait: bool,
    at_once: bool,
    allowed: Allowed | None,
) -> Publish:
    """Return what hands a payload to a daemon; raise `UsageError` where the rest of it is wrong."""
    from hushcast.keys import read_author
    from hushcast_cli.messages.topic_arguments import checked_settings, choose_topic

    chosen = await choose_topic(topic, link_file)
    checked_settings(chosen, settings)
    attributes = dict(setting.split("=", 1) for setting in settings)
    author = read_author(key_file) if key_file is not None else None
    return lambda daemon, payload: daemon.enqueue(
        chosen.text,
        payload,
        attributes=attributes,
        author=author,
        at_once=not no_wait,
        purposes=allowed,
        open=is_open,
        next_round=at_once,
    )


def _one_topic(
    topic: str | None, payload: str | None, link_file: Path | None
) -> tuple[str | None, str | None]:
    """Return topic and payload: what stands first is the payload where a file has the topic."""
    from hushcast_cli.messages.topic_arguments import is_link

    if link_file is not None:
        if payload is not None or (topic is not None and is_link(topic)):
            raise click.UsageError("give TOPIC or --link-file, not both", click.get_current_context())
        topic, payload = None, topic
    check_one_topic(topic, link_file)
    return topic, payload


def _check_one_payload(payload: str | None, file: Path | None, link_file: Path | None, lines: bool) -> None:
    usage = click.get_current_context()
    if lines and payload not in (None, "-"):
        raise click.UsageError("--lines reads standard input or --file: PAYLOAD is too much", usage)
    if payload is not None and file is not None:
        raise click.UsageError("give PAYLOAD or --file, not both", usage)
    if str(link_file) == "-" and (payload if file is None else str(file)) in (None, "-"):
        raise click.UsageError("standard input holds the link: give PAYLOAD or --file F", usage)


async def _publish_lines(daemon: Daemon, lines: AsyncIterator[bytes], hand_in: Publish, told: _Told) -> None:
    """Publish each line as soon as the one before is in the outbox; print what became of each."""
    import trio

    room = trio.CapacityLimiter(LINES_AT_ONCE)

    async def publish_line(line: bytes, task_status: trio.TaskStatus[None]) -> None:
        async with room:
            with told.line() as one:
                await _publish(daemon, line, hand_in, one, task_status.started)

    async with trio.open_nursery() as nursery:
        async for line in lines:
            await nursery.start(publish_line, line)


async def _publish(
    daemon: Daemon, payload: bytes, hand_in: Publish, told: _Told, queued: Callable[[], None] = lambda: None
) -> None:
    """Publish, and note in `told` how far it has come."""
    from hushcast.errors import NoDaemon
    from hushcast_cli.awaited_progress import shown_when_slow
    from hushcast_cli.output import note
    from hushcast_protocol.base.errors import Refusal

    told.queued = await hand_in(daemon, payload)
    queued()
    if told.queued.outlook:
        note(told.queued.outlook)
    if told.no_wait or told.queued.outlook:
        return
    async with shown_when_slow("waiting for a relay's receipt"):
        try:
            await daemon.accepted(told.queued)
        except NoDaemon as error:
            raise NoDaemon(f"{error}: {told.whereabouts}") from None
        except Refusal:  # somebody took it back
            told.queued = None
            raise
    told.accepted()
