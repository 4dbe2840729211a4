"""`hushcast admin check-config`: whether a configuration can be used, and what it says."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.options import FILE, json_option


@click.command("check-config")
@click.argument("file", type=FILE, metavar="F")
@click.option("--show", is_flag=True, help="Also show what it says, where its program has more to tell.")
@json_option
@pass_choices
def check_config(choices: Choices, file: Path, show: bool) -> None:
    """Check a configuration without starting anything.

    Says which key is wrong and why, with exit code 2; `hushcast run` refuses to start with the same words.
    With --show also what it says, such as where a gateway listens and who may what.

    \b
    Examples:
      hushcast admin check-config relay.toml
      hushcast admin check-config --show gateway.toml
    """
    from hushcast_cli.configuration.state import one_of, program_of
    from hushcast_cli.output import json_line, table, text_line, write

    program = program_of(file)
    settings = program.load(file)
    kind = program.role(settings).name
    shown = program.summary.load()(settings) if show and program.summary is not None else {}
    if choices.json:
        write(json_line({"file": str(file), "kind": kind, **shown}))
        return
    write(text_line(f"{file}: a good configuration of {one_of(kind)}"))
    write(table([(name, what) for name, found in shown.items() for what in found]))
