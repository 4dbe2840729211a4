"""`hushcast device keys`: keys of authors that a person's devices share, where that is asked for."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.options import FILE, daemon_options, timeout_option


@click.command(short_help="List, share or take over keys of authors.")
@click.argument("name", required=False)
@click.option("--share", type=FILE, metavar="F", help="Share the key in this file under NAME.")
@click.option("--write", "written", type=FILE, metavar="F", help="Write the key NAME into this new file.")
@click.option("--forget", is_flag=True, help="Share the key NAME no more; files that have it stay.")
@timeout_option
@daemon_options
@pass_choices
def keys(
    choices: Choices,
    name: str | None,
    share: Path | None,
    written: Path | None,
    forget: bool,
    timeout: float | None,
) -> None:
    """List the keys of authors that your devices share; or share, take over or forget the one called NAME.

    A key is on the other devices within an epoch or two. Whoever has one of them can sign as the author; a
    device that is removed keeps the keys that it had.

    \b
    Examples:
      hushcast device keys
      hushcast device keys pen --share author.key
      hushcast device keys pen --write author.key
    """
    chosen = [share is not None, written is not None, forget]
    if sum(chosen) > 1 or (name is None) != (not any(chosen)):
        raise click.UsageError(
            "give NAME and one of --share, --write and --forget, or nothing", click.get_current_context()
        )
    from hushcast.keys import read_author, write_author
    from hushcast_cli.chosen_daemon import ask
    from hushcast_cli.output import json_line, table, write

    if name is None:
        shared = ask(choices, lambda one: one.shared_authors(), timeout)
        if choices.json:
            write(b"".join(json_line({"name": one, "fingerprint": key}) for one, key in shared.items()))
        else:
            write(table(shared.items()))
        return
    title: str = name
    if written is not None:
        write_author(written, ask(choices, lambda one: one.shared_author(title), timeout))
        return
    author = None if share is None else read_author(share)
    ask(choices, lambda one: one.share_author(title, author), timeout)
