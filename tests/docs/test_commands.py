"""Commands in `console` blocks exist, with the arguments and options that are shown."""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from pathlib import Path

import click
import pytest
from pages import ROOT, blocks, pages

from hushcast_cli.main import cli

OTHERS = frozenset(
    {
        *(
            "cat",
            "cd",
            "chmod",
            "chown",
            "cp",
            "curl",
            "echo",
            "export",
            "git",
            "jq",
            "mkdir",
            "rm",
            "source",
        ),
        *("apt", "systemctl", "tar"),
    }
)
"""Programs that the documentation may use beside ours; anything else is to be thought about."""

_CONSOLE = [
    pytest.param(line, id=f"{page.relative_to(ROOT)}:{line}")
    for page in pages()
    for block in blocks(page)
    if block.language == "console"
    for line in re.sub(r"\\\n", " ", block.text).splitlines()
    if line.startswith("$ ")
]


def _commands(line: str) -> list[list[str]]:
    """Split a line into simple commands, without their assignments and redirections."""
    lexer = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    found: list[list[str]] = [[]]
    skip = False
    for word in lexer:
        if skip:
            skip = False
        elif set(word) <= set("<>"):
            skip = True
        elif set(word) <= set("|&;"):
            found.append([])
        elif found[-1] or not re.match(r"\w+=", word):
            found[-1].append(word)
    return [command for command in found if command]


def _check_ours(words: list[str]) -> None:
    """Let click parse the words of a command, without running it."""
    context = cli.make_context("hushcast", words)
    while isinstance(context.command, click.Group):
        rest = [*context._protected_args, *context.args]
        assert rest, f"{context.command_path} wants a command"
        name, command, rest = context.command.resolve_command(context, rest)
        assert command is not None
        context = command.make_context(name, rest, parent=context)


def test_there_are_commands_to_check() -> None:
    assert len(_CONSOLE) > 20


@pytest.mark.parametrize("line", _CONSOLE)
def test_commands_exist(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for program, *words in _commands(line):
        for word in words:  # files that an option wants to see
            if re.fullmatch(r"[\w-]+\.(?:toml|png|txt|jpg)", word):
                (tmp_path / word).touch()
        if program in ("hushcast", ".venv/bin/hushcast"):
            with suppress(click.exceptions.Exit):  # --help, --version; a wrong word is another error
                _check_ours(words)
        elif program == "make":
            targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
            assert {word for word in words if not word.startswith("-") and "=" not in word} <= set(targets)
        elif program in (".venv/bin/python", "python3", "python"):
            assert (ROOT / words[0]).is_file(), f"{words[0]} does not exist"
        else:
            assert program in OTHERS, f"{program}: neither ours nor a program that the documentation may use"
