"""`hushcast completion`: scripts that complete commands and options in a shell."""

from __future__ import annotations

import click

PROGRAM = "hushcast"
VARIABLE = "_HUSHCAST_COMPLETE"
"""The environment variable by which the script asks this program what could follow."""


@click.command(short_help="Print the completion script for a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    \b
    Examples:
      hushcast completion bash > ~/.local/share/bash-completion/completions/hushcast
      hushcast completion zsh > ~/.zfunc/_hushcast
      hushcast completion fish > ~/.config/fish/completions/hushcast.fish
    """
    from click.shell_completion import get_completion_class

    from hushcast_cli.output import write

    kind = get_completion_class(shell)
    assert kind is not None
    write(kind(context.find_root().command, {}, PROGRAM, VARIABLE).source().encode())
