"""`hushcast lab located map`: one batch, who wanted what, and whose answer does not hold, as a page."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.options import FILE, FOLDER, json_option, number_option


@click.command("map")
@click.option("--batch", "folder", type=FOLDER, required=True, metavar="DIR", help="The feed's batches.")
@click.option("--subscriptions", type=FILE, required=True, metavar="FILE", help="One JSON object a line.")
@click.option("--answers", type=FOLDER, required=True, metavar="DIR", help="Where answers are.")
@click.option("--out", type=FILE, required=True, metavar="FILE", help="The page; another one is replaced.")
@number_option("--number", 1, help="Which batch. Default: the newest in DIR.")
@json_option
@pass_choices
def draw_map(
    choices: Choices, folder: Path, subscriptions: Path, answers: Path, out: Path, number: int | None
) -> None:
    """Draw a batch: messages, subscriptions, what they want, and in red whose answer does not hold.

    It takes what `hushcast lab located match` took and made, and finds anew what each subscription wants. The
    page is one file without any script.

    \b
    Example:
      hushcast lab located map --batch batches --subscriptions subs.jsonl --answers answers --out map.html
    """
    from hushcast_cli.output import json_line, note, write
    from hushcast_located.batch_folder import write_whole
    from hushcast_located.map.map_contents import gather
    from hushcast_located.map.map_page import page

    gathered = gather(folder, number, subscriptions, answers)
    write_whole(out, page(gathered).encode(), replace=True)
    wrong = {one.name: str(one.problem) for one in gathered.answered if one.problem is not None}
    if choices.json:
        write(json_line({"page": str(out), "number": gathered.batch.body.number, "problems": wrong}))
    else:
        note(f"open {out}: {len(wrong):,} of {len(gathered.answered):,} answers do not hold")
