"""Hands an owner's batches to the daemon, which publishes them on the feed's topic."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.options import FILE, FOLDER, daemon_options, number_option, timeout_option

if TYPE_CHECKING:
    from hushcast_protocol.base.crypto.secrets import Seed

feed_option = click.option(
    "--feed", type=FILE, metavar="LINKFILE", help="Publish it on the topic whose link is in this file, too."
)


@dataclass(frozen=True)
class OwnerFeed:
    """An owner's key, with the file that it is in, the folder of batches, and the feed's link."""

    seed: Seed
    author: Seed
    """Of what carries the batches: a key that a provider knows."""
    key_file: Path
    folder: Path
    feed_file: Path
    link: str

    def again(self, number: int) -> str:
        """Return the command that publishes a batch."""
        return (
            f"hushcast located publish --key {self.key_file} --batch {self.folder} --number {number} "
            f"--feed {self.feed_file}"
        )


def publishing(key_file: Path, folder: Path, feed_file: Path, former_key: Path | None = None) -> OwnerFeed:
    """Read what it takes to publish; raise `UsageError`."""
    from hushcast.keys import read_link
    from hushcast_located.keys import read_owner

    seed = read_owner(key_file)
    author = seed if former_key is None else read_owner(former_key)
    return OwnerFeed(seed, author, key_file, folder, feed_file, read_link(feed_file))


def send_batch(
    choices: Choices, given: OwnerFeed, number: int | None, with_table: bool | None, timeout: float | None
) -> tuple[int, int]:
    """Hand a batch to the daemon; return its number, and the messages that carry it.

    Raises what says why not, and how to do it later.
    """
    from hushcast.errors import NoDaemon, Refusal, TimedOut
    from hushcast_cli.daemon_calls import converse
    from hushcast_located.batch_folder import BatchFolder
    from hushcast_located.paced_publication import publish, to_publish

    number, parts = to_publish(given.seed, BatchFolder(given.folder), number, with_table)
    try:
        converse(choices, lambda daemon: publish(daemon, given.link, given.author, parts), timeout)
    except (NoDaemon, Refusal, TimedOut) as error:
        later = f"batch {number} is signed, and not published: `{given.again(number)}` does that later"
        raise type(error)(f"{error}; {later}") from None
    return number, len(parts)


@click.command("publish")
@click.option("--key", "key_file", type=FILE, required=True, metavar="F", help="The owner's key.")
@click.option("--batch", "folder", type=FOLDER, required=True, metavar="DIR", help="The feed's batches.")
@number_option("--number", 1, help="Which batch. Default: the newest.")
@click.option(
    "--former-key", type=FILE, metavar="F", help="The key before, for a provider that knows that alone."
)
@click.option("--feed", type=FILE, required=True, metavar="LINKFILE", help="A file with the feed's link.")
@timeout_option
@daemon_options
@pass_choices
def publish_command(
    choices: Choices,
    key_file: Path,
    folder: Path,
    number: int | None,
    former_key: Path | None,
    feed: Path,
    timeout: float | None,
) -> None:
    """Publish a batch again, with its weights.

    For a provider that came later, or missed it; or where no daemon was there when it was signed. It is cut
    into messages of 255 KiB, each signed by the owner's key. They are in the daemon's outbox when the command
    ends, and the daemon goes on until a relay has them.

    \b
    Example:
      hushcast located publish --key shops.key --batch batches --feed feed.link
    """
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_runtime.wording import counted

    given = publishing(key_file, folder, feed, former_key)
    number, parts = send_batch(choices, given, number, True, timeout)
    if choices.json:
        write(json_line({"number": number, "parts": parts}))
    else:
        write(text_line(f"batch {number} and its weights are in the outbox, {counted(parts, 'message')}"))


@click.command("revoke")
@click.option("--key", "key_file", type=FILE, required=True, metavar="F", help="The owner's key.")
@click.option("--batch", "folder", type=FOLDER, required=True, metavar="DIR", help="The feed's batches.")
@feed_option
@timeout_option
@daemon_options
@pass_choices
def revoke_command(
    choices: Choices, key_file: Path, folder: Path, feed: Path | None, timeout: float | None
) -> None:
    """Revoke an owner's key that leaked: the feed ends, and whoever follows it is told.

    The key signs an empty last batch, and that none follows it. Whoever hears of that takes nothing that the
    key signs afterwards, nor what a key signs that it has handed over to. Nobody can take that back. An owner
    that runs is to be stopped before. Without --feed it is signed alone; `publish` sends it.

    \b
    Example:
      hushcast located revoke --key shops.key --batch batches --feed feed.link
    """
    import time

    from hushcast_cli.output import json_line, text_line, write
    from hushcast_located.batch_folder import BatchFolder
    from hushcast_located.keys import read_owner
    from hushcast_located.owner_handover import revoke

    given = publishing(key_file, folder, feed) if feed is not None else None
    number = revoke(read_owner(key_file), BatchFolder(folder), int(time.time())).body.number
    if choices.json:
        write(json_line({"number": number}))
    else:
        write(text_line(f"revoked: batch {number} is the last one"))
    if given is not None:
        send_batch(choices, given, number, True, timeout)
