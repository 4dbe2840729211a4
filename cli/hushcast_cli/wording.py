"""What is wrong with a command line, in words of ours: the one place where those of click are replaced."""

from __future__ import annotations

import re

import click
from click.exceptions import NoSuchCommand

from hushcast_cli.command_groups import walk
from hushcast_protocol.base.suggestions import alike, did_you_mean, one_of

# click's message of a bad value: the value itself, and then one of these with a name of the type.
_BAD_VALUE = re.compile(r"(?P<shown>.*) is not (?:a valid|in the range|one of) [^\n]*", re.DOTALL)

_EXTRA = re.compile(r"Got unexpected extra arguments? \((?P<words>.*)\)", re.DOTALL)
_NUMBER = re.compile(r"-\.?\d")

_QUOTES = "'\""


def sentence(error: click.ClickException) -> str:
    """Return the error as one sentence without its full stop; where to read more comes behind it."""
    if isinstance(error, click.NoSuchOption):
        behind = ": what begins with a hyphen goes behind `--`" if _NUMBER.match(error.option_name) else ""
        return f"there is no option {error.option_name}{behind or _options_like(error)}"
    if isinstance(error, NoSuchCommand):
        return f"there is no command {error.command_name!r}{_commands_like(error)}"
    if isinstance(error, click.MissingParameter) and error.param is not None:
        choices = _choices(error.param)
        return f"{_name(error.param)} is missing{f': {one_of(choices)}' if choices else ''}"
    if isinstance(error, click.BadParameter) and error.param is not None:
        return f"{_name(error.param)}: {_bad_value(error.param, error.message.rstrip('.'))}"
    if isinstance(error, click.BadOptionUsage):
        wants = "needs a value" if "requires" in error.message else "takes no value"
        return f"{error.option_name} {wants}"
    if (found := _EXTRA.fullmatch(error.message)) is not None:
        return f"{found['words']} is too much: put a text that has spaces into quotes, 'rain at noon'"
    return error.format_message().rstrip(".")


def _commands_like(error: NoSuchCommand) -> str:
    """Return what may have been meant: a command of the same group, else one of any group, with its path."""
    if error.ctx is None or not isinstance(error.ctx.command, click.Group):
        return ""
    word = error.command_name
    if meant := did_you_mean(word, error.ctx.command.commands):
        return meant
    paths = [path for path, _ in walk(error.ctx.find_root().command, ()) if path]
    likest = alike(word, {path[-1] for path in paths})[:1]
    found = [f"`hushcast {' '.join(path)}`" for path in paths if path[-1] in likest]
    return f": did you mean {one_of(found)}?" if found else ""


def _bad_value(parameter: click.Parameter, message: str) -> str:
    found, expected = _BAD_VALUE.fullmatch(message), _expected(parameter.type)
    if found is None or not expected:
        return message
    shown = found["shown"]
    return f"{shown} is not {expected}{did_you_mean(shown.strip(_QUOTES), _choices(parameter))}"


def _expected(kind: click.ParamType[object]) -> str:
    if isinstance(kind, click.Choice):
        return f"one of {', '.join(kind.choices)}"
    if isinstance(kind, click.IntRange):
        if kind.min is not None and kind.max is not None:
            return f"a whole number from {kind.min} to {kind.max}"
        return f"a whole number of at least {kind.min}" if kind.min is not None else "a whole number"
    if kind is click.INT:
        return "a whole number"
    return "a number" if kind is click.FLOAT else ""


def _choices(parameter: click.Parameter) -> list[str]:
    return list(parameter.type.choices) if isinstance(parameter.type, click.Choice) else []


def _name(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return parameter.metavar or str(parameter.name).upper()


def _options_like(error: click.NoSuchOption) -> str:
    if error.ctx is None:
        return ""
    known = [name for parameter in error.ctx.command.params for name in parameter.opts]
    return did_you_mean(error.option_name, [name for name in known if name.startswith("--")])
