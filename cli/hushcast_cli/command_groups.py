"""Groups of commands: the help of each shows whole sentences; that of the root has sections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from importlib import import_module
from typing import Any

import click

from hushcast_cli.old_names import current_words

_WHOLE = 1000  # characters of a first sentence: none is as long


def first_sentence(command: click.Command) -> str:
    """Return the line by which a command is listed, uncut."""
    return command.get_short_help_str(_WHOLE)


class CommandGroup(click.Group):
    """A group whose help cuts no line, in the order in which its commands were added."""

    group_class = type

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._later: list[Callable[[], Iterable[click.Command]]] = []
        super().__init__(*arguments, **named)

    def add_later(self, load: Callable[[], Iterable[click.Command]]) -> None:
        """Add the commands that `load` imports, once one of this group is asked for: most are of others."""
        self._later.append(load)

    @property
    def commands(self) -> MutableMapping[str, click.Command]:
        """Its commands by their names."""
        later, self._later = self._later, []
        for load in later:
            for command in load():
                self.add_command(command)
        return self._commands

    @commands.setter
    def commands(self, commands: MutableMapping[str, click.Command]) -> None:
        self._commands = commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of its commands, in the order in which they were added."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what it holds, a sentence each."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, first_sentence(one)) for name, one in self.commands.items()])


class SectionedGroup(CommandGroup):
    """The command line as a whole: its commands stand in sections, and those of before are understood.

    A command is imported when it is asked for, or all are.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._sections: Mapping[str, Mapping[str, str]] = {}
        self._modules: dict[str, str] = {}

    def fill(self, sections: Mapping[str, Mapping[str, str]]) -> None:
        """Take over all commands, by the titles of their sections: the module in which each has its name."""
        self._sections = sections
        for modules in sections.values():
            self._modules |= modules
        self.add_later(lambda: map(self._imported, self._modules))

    @property
    def sections(self) -> Mapping[str, Sequence[click.Command]]:
        """All commands, by the titles of their sections."""
        return {title: [self.commands[name] for name in names] for title, names in self._sections.items()}

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name, if there is one; the others need not be imported."""
        return self._imported(cmd_name) if cmd_name in self._modules else None

    def _imported(self, name: str) -> click.Command:
        command = getattr(import_module(self._modules[name]), name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the words `args` begin with, under its name or an old one."""
        return super().resolve_command(ctx, current_words(args))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections, a line for each command; all first columns are equally wide."""
        width = max(map(len, self.commands))
        for title, commands in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(f"{one.name:<{width}}", first_sentence(one)) for one in commands])


CommandAt = tuple[tuple[str, ...], click.Command]
"""A command with its path."""


def walk(command: click.Command, path: tuple[str, ...]) -> Iterator[CommandAt]:
    """Return commands and groups, at `path` and below."""
    yield path, command
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from walk(child, (*path, name))


def leaves(command: click.Command, path: tuple[str, ...]) -> Iterator[CommandAt]:
    """Return the commands that do something, at `path` and below."""
    return (found for found in walk(command, path) if not isinstance(found[1], click.Group))
