"""`hushcast gateway`: a first configuration, users' passwords, what is wrong, as a person types it."""

from __future__ import annotations

import os
import pty
import socket
import stat
import tomllib
from pathlib import Path

import nacl.pwhash
import pytest
from ports import free_port
from running import COMMAND, Running, environment, hushcast

from hushcast_cli.configuration.first_config import first_config
from hushcast_cli.configuration.places import service_places
from hushcast_cli.configuration.user_sections import put_password
from hushcast_gateway.settings import GatewaySettings
from hushcast_gateway.tokens import token_hash
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.processes.config import load_settings, parse_settings


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a short name: in it gateways have Unix sockets, whose paths have 107 bytes at most."""
    return tmp_path_factory.mktemp("t")


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a user whose files lie under `tmp_path`."""
    return environment(
        HOME=str(tmp_path), XDG_CONFIG_HOME=str(tmp_path / "config"), XDG_STATE_HOME=str(tmp_path / "state")
    )


def written(tmp_path: Path, port: int, *more: str) -> Path:
    """Write a configuration at a port, with anybody let in."""
    file = tmp_path / "gateway.toml"
    lines = [
        'program = "gateway"',
        f'state = "{tmp_path}/state"',
        *more,
        "[[listen]]",
        'kind = "tcp"',
        f"port = {port}",
    ]
    file.write_text("\n".join([*lines, "[anonymous]", 'publish = ["#"]', ""]))
    return file


# A first configuration


async def test_init_is_all_that_a_gateway_needs(tmp_path: Path, home: dict[str, str]) -> None:
    made = await hushcast("init", "gateway", env=home)
    config = tmp_path / "config" / "hushcast" / "gateway.toml"
    assert made.stdout.decode() == f"{config}: the configuration of a gateway\nnext: hushcast run gateway\n"
    assert (made.code, made.stderr) == (0, "")
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    settings = load_settings(config, GatewaySettings)
    assert settings.anonymous is None, "nobody without a name"
    assert settings.users["local"].uid == (os.getuid(),)
    assert all(place.is_local for place in settings.listeners())
    checked = await hushcast("admin", "check-config", "--show", config, env=home)
    assert checked.code == 0
    assert "127.0.0.1:1883" in checked.stdout.decode()
    general = await hushcast("admin", "check-config", config, "--json", env=home)
    assert general.objects == [{"file": str(config), "kind": "gateway"}]


def test_the_services_file_fits_its_unit() -> None:
    text = first_config("gateway", service_places("gateway"), None, None)
    settings = parse_settings(text.encode(), "gateway.toml", GatewaySettings)
    assert settings.state_path() == Path("/var/lib/hushcast-gateway")
    assert settings.listeners()[1].path == "/run/hushcast-gateway/mqtt.sock"
    assert settings.socket_group == "hushcast-gateway"


@pytest.mark.parametrize(
    ("options", "told"),
    [(["--name", "x"], "--name"), (["--epoch", "9"], "--epoch"), (["--tor-sockets", "/x"], "tor")],
)
async def test_what_is_not_a_gateways(options: list[str], told: str, home: dict[str, str]) -> None:
    outcome = await hushcast("init", "gateway", *options, env=home)
    assert outcome.code == 2
    assert told in outcome.error


async def test_a_variable_for_daemons_is_no_gateways_affair(home: dict[str, str]) -> None:
    """The image sets it for all that run in it."""
    outcome = await hushcast("init", "gateway", env=home | {"HUSHCAST_TOR_SOCKETS": "/run/hushcast-tor"})
    assert (outcome.code, outcome.stderr) == (0, "")


async def test_run_without_a_configuration_says_how_to_have_one(home: dict[str, str]) -> None:
    for command in ("run", "doctor"):
        outcome = await hushcast("gateway", command, env=home)
        assert outcome.code == 2
        assert "hushcast init gateway" in outcome.error


# Passwords


def is_right(known: str, password: bytes) -> bool:
    return nacl.pwhash.verify(known.encode(), password)


async def test_passwd_prints_what_a_configuration_needs() -> None:
    outcome = await hushcast("gateway", "passwd", "alice", stdin=b"secret\n")
    assert (outcome.code, outcome.stderr) == (0, "")
    (user,) = tomllib.loads(outcome.stdout.decode())["users"].items()
    assert user[0] == "alice"
    assert is_right(user[1]["password"], b"secret")
    assert b"secret" not in outcome.stdout
    as_json = await hushcast("gateway", "passwd", "alice", "--json", stdin=b"sec ret\r\n")
    (found,) = as_json.objects
    assert is_right(found["password"], b"sec ret")


async def test_passwd_puts_a_user_into_a_configuration(tmp_path: Path) -> None:
    file = written(tmp_path, 1883)
    file.write_text("# a comment that stays\n" + file.read_text() + "# and one at the end")
    file.chmod(0o640)
    first = await hushcast("gateway", "passwd", "al ice", "--config", file, stdin=b"one\n")
    assert first.code == 0
    assert "may do nothing yet" in first.stderr
    text = file.read_text().replace("publish = []", 'publish = ["home/#"]  # hers')
    file.write_text(text)
    second = await hushcast("gateway", "passwd", "al ice", "--config", file, "--json", stdin=b"two\n")
    assert second.objects == [{"user": "al ice", "file": str(file), "new": False}]
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert file.read_text().startswith("# a comment that stays\n")
    assert "# and one at the end" in file.read_text()
    assert 'publish = ["home/#"]  # hers' in file.read_text()
    user = load_settings(file, GatewaySettings).users["al ice"]
    assert user.password is not None
    assert is_right(user.password, b"two")


async def test_tokens_are_added_one_by_one_and_shown_once(tmp_path: Path) -> None:
    file = written(tmp_path, 1883)
    drawn = []
    for _ in range(2):
        (found,) = (await hushcast("gateway", "token", "bob", "--config", file, "--json")).objects
        drawn.append(found)
        assert found["token"].startswith("tk_")
        assert found["token"] not in file.read_text()
    user = load_settings(file, GatewaySettings).users["bob"]
    assert user.tokens == tuple(found["hash"] for found in drawn)
    assert [token_hash(found["token"].encode()) for found in drawn] == list(user.tokens)
    printed = await hushcast("gateway", "token", "bob")
    token = printed.stdout.decode().strip()
    assert token_hash(token.encode()) in printed.stderr
    assert token not in printed.stderr


async def test_what_has_a_history_is_shown(tmp_path: Path) -> None:
    file = written(tmp_path, 1883)
    file.write_text(file.read_text() + '[history]\ntopics = ["home/#", "a"]\nhours = 3\n')
    (found,) = (await hushcast("admin", "check-config", "--show", file, "--json")).objects
    assert found["history"] == ["home/#, a: 3 hours"]


@pytest.mark.parametrize(
    ("before", "told"),
    [
        ('users.bob = { password = "x" }\n', "by hand"),
        ("users = 3\n", "by hand"),
        ('[[users]]\nname = "bob"\n', "by hand"),
        ("not toml", "not TOML"),
    ],
)
def test_a_file_that_cannot_be_edited_stays_as_it_is(tmp_path: Path, before: str, told: str) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(before)
    with pytest.raises(UsageError, match=told):
        put_password(file, "bob", "$hash")
    assert file.read_text() == before


@pytest.mark.parametrize(
    ("header", "user"),
    [
        ("[users.bob]", "bob"),
        ('[users."bob"]', "bob"),
        ("  [ users . 'b.b' ]  # who", "b.b"),
        ('["users"."b]b"]', "b]b"),
    ],
)
def test_sections_are_found_however_they_are_written(tmp_path: Path, header: str, user: str) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(f'[users.al]\npassword = "al"\n{header}\nuid = [1]\npassword = "old"\n[log]\n')
    assert not put_password(file, user, "new")
    users = tomllib.loads(file.read_text())["users"]
    assert users == {"al": {"password": "al"}, user: {"uid": [1], "password": "new"}}
    file.write_text(f"{header}\nuid = [1]\n")
    assert not put_password(file, user, "new")
    assert tomllib.loads(file.read_text())["users"] == {user: {"uid": [1], "password": "new"}}


@pytest.mark.parametrize(
    ("user", "said", "told"),
    [
        ("bob", b"\n", "1 to 1024"),
        ("bob", b"x" * 1025, "1 to 1024"),
        ("b\nb", b"x\n", "printed"),
        ("", b"x\n", "64"),
    ],
)
async def test_what_is_no_password_or_user(user: str, said: bytes, told: str) -> None:
    outcome = await hushcast("gateway", "passwd", user, stdin=said)
    assert outcome.code == 2
    assert told in outcome.error


async def test_a_configuration_that_is_not_there_is_named_before_anything_is_asked(tmp_path: Path) -> None:
    outcome = await hushcast("gateway", "passwd", "bob", "--config", tmp_path / "none.toml", stdin=b"x\n")
    assert outcome.code == 2
    assert "hushcast init gateway" in outcome.error


@pytest.mark.slow
def test_a_person_is_asked_twice_and_sees_nothing_of_it() -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(COMMAND[0], [*COMMAND, "gateway", "passwd", "alice"], environment())
    seen = b""
    for prompt in (b"Password: ", b"Again: "):
        while not seen.endswith(prompt):
            seen += os.read(terminal, 1024)
        os.write(terminal, b"secret\n")
    while True:
        try:
            seen += os.read(terminal, 1024)
        except OSError:  # the end of a terminal
            break
    assert os.waitpid(pid, 0)[1] == 0
    os.close(terminal)
    assert b"secret" not in seen
    assert b"$argon2id$" in seen


# What is wrong


async def test_check_config_says_which_key_is_wrong(tmp_path: Path) -> None:
    file = written(tmp_path, 1883, 'puback = "dsk"')
    for command in (
        ["admin", "check-config", "--show", file],
        ["check-config", file],
        ["run", "gateway", "--config", file],
    ):
        outcome = await hushcast(*command)
        assert outcome.code == 2
        assert "puback: Invalid enum value 'dsk': did you mean disk?" in outcome.error


async def test_commands_for_daemons_say_that_a_gateway_is_none(tmp_path: Path) -> None:
    file = written(tmp_path, 1883)
    outcome = await hushcast("admin", "backup", tmp_path / "b", "--config", file)
    assert outcome.code == 2
    assert "is a gateway's" in outcome.error


async def test_the_doctor_before_the_first_start(tmp_path: Path) -> None:
    file = written(tmp_path, free_port())
    outcome = await hushcast("doctor", "gateway", "--config", file)
    assert (outcome.code, outcome.stderr) == (0, "")
    assert "is free" in outcome.stdout.decode()
    found = (await hushcast("doctor", "gateway", "--config", file, "--json")).objects
    assert [one["check"] for one in found if one["verdict"] != "good"] == ["service"]
    assert not (tmp_path / "state").exists(), "it changes nothing"


async def test_the_doctor_finds_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        file = written(tmp_path, other.getsockname()[1])
        outcome = await hushcast("doctor", "gateway", "--config", file)
    assert outcome.code == 1
    assert "Address already in use" in outcome.stdout.decode()
    assert outcome.error == "not well: listen #1"


@pytest.mark.slow
async def test_the_doctor_of_a_gateway_that_runs(tmp_path: Path) -> None:
    file = written(tmp_path, free_port())
    running = await Running.start("run", "gateway", "--config", file)
    try:
        while (
            "the gateway runs"
            not in (outcome := await hushcast("doctor", "gateway", "--config", file)).stdout.decode()
        ):
            pass
        while "answers" not in outcome.stdout.decode():
            outcome = await hushcast("doctor", "gateway", "--config", file)
        assert outcome.code == 0
        second = await hushcast("run", "gateway", "--config", file)
        assert second.code == 2
        assert "another daemon is running with the state directory" in second.error
    finally:
        running.process.terminate()
    ended = await running.outcome()
    assert ended.code == 0
    assert ended.stdout == b""
