"""`hushcast help`: the help of a command, or a list of all."""

from __future__ import annotations

import click

from hushcast_cli.command_groups import SectionedGroup, first_sentence, leaves

ALL = "all"


@click.command("help", short_help="Show the help of a command; `help all` lists all commands.")
@click.argument("words", nargs=-1, metavar="[COMMAND]…")
@click.pass_context
def help(context: click.Context, words: tuple[str, ...]) -> None:
    """Show the help of COMMAND, as its --help does; without one that of `hushcast`.

    `hushcast help all` lists all commands, those in groups, too.

    \b
    Examples:
      hushcast help publish
      hushcast help admin broker admit
      hushcast help all
    """
    from hushcast_cli.output import write

    root = context.find_root()
    if words == (ALL,):
        write(_all(root).encode())
        return
    rest, shown = list(words), root
    while rest:
        if not isinstance(shown.command, click.Group):
            raise click.UsageError(f"`{shown.command_path}` has no commands of its own", context)
        name, command, rest = shown.command.resolve_command(shown, rest)
        assert command is not None
        shown = click.Context(command, shown, name)
        rest = [word for word in rest if not word.startswith("-")]  # an old name may mean an option
    write(f"{shown.command.get_help(shown)}\n".encode())


def _all(root: click.Context) -> str:
    """Return a line or two for each command, in the sections of the command line."""
    assert isinstance(root.command, SectionedGroup)
    formatter = root.make_formatter()
    found = {
        title: [
            (" ".join(path), first_sentence(leaf))
            for one in commands
            for path, leaf in leaves(one, (str(one.name),))
        ]
        for title, commands in root.command.sections.items()
    }
    width = max(len(name) for rows in found.values() for name, _ in rows)
    for title, rows in found.items():
        with formatter.section(title):
            formatter.write_dl([(f"{name:<{width}}", line) for name, line in rows], col_max=width)
    return formatter.getvalue().lstrip("\n")
