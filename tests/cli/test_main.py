"""The command line as a whole: start, help, where options may stand, how it finds a daemon, how it ends."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click
import pytest
import trio
from click.shell_completion import BashComplete
from fake_daemon import FakeDaemon
from running import COMMAND, WITHIN, environment, hushcast

from hushcast_cli import completion_values
from hushcast_cli.completion import PROGRAM, VARIABLE
from hushcast_cli.main import cli
from hushcast_protocol.base.crypto.secrets import TopicSecret
from hushcast_protocol.content.topics import make_topic, write_link

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"
HEAVY = {"trio", "nacl", "msgspec", "rich", "stem", "asyncio", "hushcast_testnet"}
HEAVY |= {"pyspark", "numpy", "pandas", "pyarrow", "hushcast_analytics"}


def commands(command: click.Command = cli, path: str = "hushcast") -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from commands(child, f"{path} {name}")


COMMANDS = dict(commands())


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["help", "all"], ["admin", "backup", "--help"]])
async def test_help_and_version_import_nothing_heavy(words: list[str]) -> None:
    program = (
        f"import sys; from hushcast_cli.main import run; code = run({words!r});"
        " print(*sorted({name.partition('.')[0] for name in sys.modules})); sys.exit(code)"
    )
    done = await trio.run_process([sys.executable, "-c", program], capture_stdout=True)
    *shown, modules = done.stdout.decode().splitlines()
    assert words != ["--version"] or re.fullmatch(r"hushcast \d+\.\d+\.\d+\S*", *shown)
    assert HEAVY.isdisjoint(modules.split())
    # What tells the version of a package reads mail and archives for it.
    assert words == ["--version"] or {"email", "zipfile"}.isdisjoint(modules.split())


QUESTIONS = {
    "status": "operate.status operate.status_summary",
    "subscriptions": "messages messages.subscriptions completion_values",
    "outbox": "messages messages.outbox",
    "device list": "devices devices.authors devices.circle devices.device devices.links",
}
"""Commands that ask a daemon one thing, and what they load of the command line beside what all do."""


@pytest.mark.parametrize("words", QUESTIONS)
async def test_a_question_loads_no_other_command_no_keys_and_no_loop(words: str) -> None:
    """What seals, signs, hashes and waits is for other commands: `status` is asked every minute by timers."""
    arguments = [*words.split(), "--socket", "/nowhere/daemon"]
    program = (
        f"import sys; from hushcast_cli.main import run; before = {{*sys.modules}}; run({arguments!r});"
        " print(*{*sys.modules} - before)"
    )
    done = await trio.run_process([sys.executable, "-c", program], capture_stdout=True, capture_stderr=True)
    loaded = {*done.stdout.decode().split()}
    assert "hushcast.plain_connection" in loaded
    assert {"trio", "anyio", "asyncio", "nacl", "hushcast.daemon", "hushcast.keys"}.isdisjoint(loaded)
    folders = {"operate", "messages", "devices", "located", "gateways", "purposes", "testnets"}
    parts = {name.removeprefix("hushcast_cli.") for name in loaded if name.startswith("hushcast_cli.")}
    own = {*QUESTIONS[words].split(), words.split()[0]}
    assert {part for part in parts if part.partition(".")[0] in folders} <= {*own, "operate"}


def test_each_command_has_the_name_that_it_is_found_by() -> None:
    assert all(command.name == name for name, command in cli.commands.items())
    assert [*cli.commands] == [one.name for commands in cli.sections.values() for one in commands]


async def test_the_commands_of_a_group_are_loaded_once_asked_for() -> None:
    program = (
        "import sys; from hushcast_cli.main import cli, run; run(['--help']);"
        " loaded = {'hushcast_cli.operate.backup', 'hushcast_cli.analysis.analyze'} & {*sys.modules};"
        " print(*loaded, *cli.commands['lab'].commands)"
    )
    done = await trio.run_process([sys.executable, "-c", program], capture_stdout=True)
    names = done.stdout.decode().splitlines()[-1].split()
    assert names == ["analyze", "job", "traces", "filters", "located", "purpose", "directories", "cover"]


@pytest.mark.parametrize("path", COMMANDS)
def test_help_renders(path: str) -> None:
    """In this process: a process for each would take long."""
    command = COMMANDS[path]
    with click.Context(command, info_name=path) as context:
        text = command.get_help(context)
    assert "\b" not in text
    assert "\\b" not in text
    assert command.help
    if not isinstance(command, click.Group) or command is cli:
        assert "Example" in text, "every command shows how it is used"
    assert all(parameter.help for parameter in command.params if isinstance(parameter, click.Option))


@pytest.mark.parametrize("flag", ["-h", "--help"])
async def test_both_flags_show_help(flag: str) -> None:
    outcome = await hushcast("testnet", "simulate", flag)
    assert outcome.code == 0
    assert b"--subscribers" in outcome.stdout
    assert outcome.stderr == ""


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_and_option_is_documented(path: str) -> None:
    sections = re.split(r"^#+ ", DOCS.read_text(), flags=re.MULTILINE)
    (section,) = [text for text in sections if text.partition("\n")[0].strip("` ") == path]
    for parameter in COMMANDS[path].params:
        if parameter.name != "help":
            (name,) = parameter.opts[:1]
            shown = name if isinstance(parameter, click.Option) else parameter.human_readable_name
            assert shown in section, f"{shown} of `{path}` is missing in docs/cli.md"


async def test_no_command_shows_help_as_wrong_usage() -> None:
    outcome = await hushcast()
    assert outcome.code == 2
    assert outcome.stdout == b""
    assert "Messages:" in outcome.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["publish"], "TOPIC"),
        (["nonsense"], "nonsense"),
        (["publish", "t", "--nonsense"], "--nonsense"),
        (["status", "extra"], "extra"),
        (["subscribe", "t", "--count", "-1"], "--count"),
        (["subscribe", "t", "--json", "--format", "{payload}"], "leave --format away"),
        (["subscribe", "t", "--timeout", "nan"], "--timeout"),
        (["subscribe", "t", "--timeout", "-1"], "--timeout"),
        (["run", "node"], "--config"),
        (["completion", "tcsh"], "tcsh"),
    ],
)
async def test_wrong_usage_is_one_line(arguments: list[str], told: str) -> None:
    outcome = await hushcast(*arguments)
    assert outcome.code == 2
    assert told in outcome.error
    assert outcome.stdout == b""


@pytest.mark.parametrize("topic", ["", "x" * 257, b"\xff"])
async def test_impossible_topics_are_wrong_usage(topic: str | bytes, tmp_path: Path) -> None:
    outcome = await hushcast("--socket", tmp_path / "none", "subscribe", topic)
    assert outcome.code == 2
    assert "topic" in outcome.error


@pytest.mark.parametrize(
    "arguments",
    [["publish", "t", "x"], ["subscribe", "t"], ["unsubscribe", "t"], ["subscriptions"], ["status"]],
)
async def test_no_daemon(arguments: list[str], tmp_path: Path) -> None:
    missing = tmp_path / "none.sock"
    outcome = await hushcast("--json", "--socket", missing, *arguments)
    assert outcome.code == 3
    assert str(missing) in outcome.error
    assert outcome.stdout == b""


async def test_no_daemon_at_the_usual_places(tmp_path: Path) -> None:
    outcome = await hushcast("status", env=environment(XDG_RUNTIME_DIR=str(tmp_path)))
    assert outcome.code == 3
    assert str(tmp_path / "hushcast" / "control.sock") in outcome.error
    assert "--socket" in outcome.error


async def test_options_stand_before_and_after_the_command(daemon: FakeDaemon) -> None:
    before = await hushcast("--json", "--socket", daemon.socket, "status")
    after = await hushcast("status", "--json", "--socket", daemon.socket)
    assert before.code == after.code == 0
    assert before.objects == after.objects == [daemon.status()]


async def test_socket_from_the_environment_yields_to_the_option(daemon: FakeDaemon, tmp_path: Path) -> None:
    here, nowhere = str(daemon.socket), str(tmp_path / "none")
    assert (await hushcast("status", env=environment(HUSHCAST_SOCKET=here))).code == 0
    assert (await hushcast("--socket", here, "status", env=environment(HUSHCAST_SOCKET=nowhere))).code == 0
    assert (await hushcast("status", "--socket", here, env=environment(HUSHCAST_SOCKET=nowhere))).code == 0
    assert (await hushcast("--socket", nowhere, "status", "--socket", here)).code == 0


async def test_socket_in_the_runtime_directory(tmp_path: Path) -> None:
    (tmp_path / "hushcast").mkdir()
    async with trio.open_nursery() as nursery:
        daemon = FakeDaemon(tmp_path / "hushcast" / "control.sock")
        await daemon.start(nursery)
        assert (await hushcast("status", env=environment(XDG_RUNTIME_DIR=str(tmp_path)))).code == 0
        daemon.stop()


async def test_starting_daemon_shows_its_status_and_refuses_the_rest(tmp_path: Path) -> None:
    async with trio.open_nursery() as nursery:
        daemon = FakeDaemon(tmp_path / "control.sock")
        await daemon.start(nursery, ready=False)
        assert (await hushcast("status", "--socket", daemon.socket)).code == 0
        refused = await hushcast("publish", "t", "x", "--socket", daemon.socket)
        daemon.stop()
    assert refused.code == 4
    assert "starting" in refused.error


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["--help"], ["status", "--json"]])
async def test_stdout_that_nobody_reads_ends_quietly(arguments: list[str], daemon: FakeDaemon) -> None:
    read, write = os.pipe()
    os.close(read)
    done = await trio.run_process(
        [*COMMAND, "--socket", daemon.socket, *arguments],
        stdout=write,
        capture_stderr=True,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["status"], ["subscribe", "t"]])
@pytest.mark.parametrize(("target", "told"), [("&-", "is closed"), ("/dev/full", "No space left on device")])
async def test_stdout_that_takes_nothing_is_a_failure(
    daemon: FakeDaemon, target: str, told: str, arguments: list[str]
) -> None:
    await daemon.put("t", b"message")
    done = await trio.run_process(
        ["sh", "-c", f'exec "$@" >{target}', "sh", *COMMAND, "--json", "--socket", daemon.socket, *arguments],
        capture_stderr=True,
        check=False,
    )
    (line,) = done.stderr.decode().splitlines()
    assert done.returncode == 1
    assert told in line
    assert daemon.service.shown == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_completion_scripts_ask_this_program(shell: str) -> None:
    outcome = await hushcast("completion", shell)
    assert outcome.code == 0
    assert b"_HUSHCAST_COMPLETE" in outcome.stdout


def test_completion_knows_the_commands() -> None:
    env = environment(_HUSHCAST_COMPLETE="bash_complete", COMP_WORDS="hushcast unsub", COMP_CWORD="1")
    done = subprocess.run(COMMAND, env=env, capture_output=True, check=True)
    assert done.stdout.split() == [b"plain,unsubscribe"]


@pytest.mark.slow
async def test_completion_knows_topics_and_tells_no_link(
    daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process, with patience: a second is long to a person, short to a busy machine."""
    monkeypatch.setattr(completion_values, "_PATIENCE", WITHIN)
    monkeypatch.setenv("HUSHCAST_SOCKET", str(daemon.socket))
    link = write_link(replace(make_topic("net"), secret=TopicSecret(bytes(32))))
    for topic in ("news", "nets", "other"):
        await daemon.hold(topic)
    handle = (await daemon.hold(link)).handle
    for words, place, found in (
        ("hushcast subscribe ne", 2, ["plain,nets", "plain,news"]),
        ("hushcast unsubscribe ", 2, [f"plain,{handle}", "plain,nets", "plain,news", "plain,other"]),
        ("hushcast testnet chaos --faults kill,st", 4, ["plain,kill,stop"]),
        (
            "hushcast lab analyze --attack tra",
            4,
            ["plain,traffic-share", "plain,trail-popcount", "plain,trained"],
        ),
    ):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(place))
        completing = BashComplete(cli, {}, PROGRAM, VARIABLE)
        suggested = await trio.to_thread.run_sync(completing.complete)
        assert sorted(suggested.split()) == found


async def test_the_last_testnet_is_remembered(tmp_path: Path) -> None:
    env = environment(XDG_STATE_HOME=str(tmp_path / "state"))
    outcome = await hushcast("testnet", "status", env=env)
    assert outcome.code == 2
    assert "--dir" in outcome.error
    (tmp_path / "state" / "hushcast").mkdir(parents=True)
    (tmp_path / "state" / "hushcast" / "testnet").write_text(f"{tmp_path}\n")
    outcome = await hushcast("testnet", "status", env=env)
    assert outcome.code == 2
    assert outcome.stderr.splitlines()[0] == f"the testnet in {tmp_path}"
    assert "there is no testnet" in outcome.stderr
    other = await hushcast("testnet", "status", "--dir", tmp_path / "other", env=env)
    assert f"{tmp_path / 'other'}" in other.stderr


async def test_the_attacks_are_named_where_one_may_be_chosen() -> None:
    outcome = await hushcast("lab", "analyze", "--help")
    told = " ".join(outcome.stdout.decode().split())
    assert "first-spy names the relay from which a colluder had a message first." in told


def test_help_is_printed_where_the_locale_has_not_all_its_characters() -> None:
    env = environment(PYTHONIOENCODING="latin-1")
    shown = subprocess.run([*COMMAND, "outbox", "--help"], env=env, capture_output=True, check=True)
    assert b"--cancel 126c5f89?" in shown.stdout
    assert shown.stderr == b""


def test_without_docstrings_help_says_that_its_texts_are_gone() -> None:
    command = [COMMAND[0], "-OO", *COMMAND[1:], "outbox", "--help"]
    shown = subprocess.run(command, env=environment(), capture_output=True, check=True)
    assert b"-OO takes them away" in shown.stderr
