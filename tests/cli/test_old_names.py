"""Names that commands once had: each leads to a command of today, and none is shown."""

from __future__ import annotations

import click
import pytest
from click.shell_completion import BashComplete
from running import environment, hushcast

from hushcast_cli.completion import PROGRAM, VARIABLE
from hushcast_cli.main import cli
from hushcast_cli.old_names import OLD_NAMES, current_words
from hushcast_runtime.processes.program import programs


def found(words: list[str]) -> tuple[str, list[str]]:
    """Return the path of the command that these words lead to, and the words that are left."""
    context, rest = click.Context(cli, info_name=PROGRAM), words
    while rest and isinstance(context.command, click.Group):
        name, command, rest = context.command.resolve_command(context, rest)
        assert command is not None
        context = click.Context(command, context, name)
    return context.command_path, rest


@pytest.mark.parametrize("old", OLD_NAMES)
def test_each_leads_to_a_command(old: str) -> None:
    path, rest = found(old.split())
    assert f"{PROGRAM} {OLD_NAMES[old]}" == " ".join([path, *rest])
    if path.endswith(("run", "doctor")):
        assert rest[0] in {program.name for program in programs()}
    else:
        assert rest in ([], ["--show"])


@pytest.mark.parametrize("old", OLD_NAMES)
def test_none_is_a_name_of_today(old: str) -> None:
    command: click.Command | None = cli
    for word in old.split():
        command = command.commands.get(word) if isinstance(command, click.Group) else None
    assert command is None


def test_flags_may_stand_between_and_behind() -> None:
    assert current_words(["directory", "--json", "doctor", "--config", "f"]) == [
        *("doctor", "directory", "--json", "--config", "f")
    ]
    assert current_words(["central", "--json", "server", "--json", "admit", "f"]) == [
        *("admin", "central", "admit", "--json", "--json", "f")
    ]
    assert current_words(["--json", "backup"]) == ["--json", "backup"]
    assert current_words(["status", "--json"]) == ["status", "--json"]
    assert current_words(["publish", "key", "new"]) == ["publish", "key", "new"]
    assert current_words([]) == []


async def test_errors_and_help_of_an_old_name_teach_the_new_one() -> None:
    wrong = await hushcast("backup", "--jsn")
    assert (wrong.code, "(see `hushcast admin backup --help`)" in wrong.error) == (2, True)
    helped = await hushcast("node", "run", "--help")
    assert helped.stdout.startswith(b"Usage: hushcast run ")
    by_help = await hushcast("help", "broker", "check-config")
    assert by_help.stdout.startswith(b"Usage: hushcast admin check-config ")


@pytest.mark.parametrize(
    ("words", "suggested"),
    [
        ("hushcast back", []),
        ("hushcast purposes dec", ["plain,decide"]),
        ("hushcast node run --con", ["plain,--config"]),
    ],
)
def test_a_shell_completes_behind_an_old_name_and_suggests_none(
    words: str, suggested: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    assert BashComplete(cli, {}, PROGRAM, VARIABLE).complete().split() == suggested


async def test_no_help_shows_one() -> None:
    shown = (await hushcast("--help", env=environment(COLUMNS="80"))).stdout.decode().splitlines()
    listed = {line.split()[0] for line in shown if line.startswith("  ") and line[2:3].isalpha()}
    assert "publish" in listed
    assert listed.isdisjoint(OLD_NAMES)
