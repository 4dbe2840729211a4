"""Help: sections with a whole line for each command, all commands by `help all`, one by `help COMMAND`."""

from __future__ import annotations

import re

import pytest
from running import environment, hushcast

from hushcast_cli.command_groups import first_sentence, leaves
from hushcast_cli.main import cli

NARROW = environment(COLUMNS="80")
LEAVES = {
    " ".join(path): command
    for one in cli.commands.values()
    for path, command in leaves(one, (str(one.name),))
}


async def test_each_command_has_a_whole_line_in_its_section() -> None:
    lines = (await hushcast("--help", env=NARROW)).stdout.decode().splitlines()
    assert max(map(len, lines)) <= 80
    titles = [line[:-1] for line in lines if re.fullmatch(r"\S.*:", line)]
    assert titles == ["Options", "Messages", "Your daemon", "Networks", "Try, measure", "More"]
    listed = lines[lines.index("Messages:") :]
    for name, command in cli.commands.items():
        (line,) = [line for line in listed if line.startswith(f"  {name} ")]
        sentence = first_sentence(command)
        assert line.endswith(f"  {sentence}"), "on one line, uncut"
        assert sentence.endswith(".")


@pytest.mark.parametrize("group", ["admin", "lab", "testnet", "located", "purpose", "gateway"])
async def test_a_group_cuts_no_sentence(group: str) -> None:
    text = (await hushcast(group, "--help", env=NARROW)).stdout.decode()
    assert max(map(len, text.splitlines())) <= 80
    assert "..." not in text.partition("Commands:")[2]


async def test_help_all_lists_every_command() -> None:
    text = (await hushcast("help", "all", env=NARROW)).stdout.decode()
    assert max(map(len, text.splitlines())) <= 80
    together = " ".join(text.split())
    for path, command in LEAVES.items():
        assert f"{path} {' '.join(first_sentence(command).split())}" in together


@pytest.mark.parametrize("words", [[], ["publish"], ["admin"], ["admin", "broker", "admit"]])
async def test_help_of_a_command_is_what_it_says_itself(words: list[str]) -> None:
    helped, itself = await hushcast("help", *words), await hushcast(*words, "--help")
    assert (helped.code, helped.stdout) == (0, itself.stdout)


async def test_help_of_what_there_is_not() -> None:
    wrong = await hushcast("help", "publis")
    assert wrong.code == 2
    assert "there is no command 'publis': did you mean publish" in wrong.error
    more = await hushcast("help", "publish", "news")
    assert (more.code, "`hushcast publish` has no commands of its own" in more.error) == (2, True)
