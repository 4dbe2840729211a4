"""Central networks: first configurations, joining, admitting a proxy, doctors, as a person types it."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
import trio
from running import COMMAND, Running, environment, hushcast, until

from hushcast_central.network_file import central_section, proxy_section
from hushcast_central.proxy.doctor import examine_server_link
from hushcast_central.server.doctor import examine_proxies
from hushcast_central.settings import ProxySettings, ServerSettings
from hushcast_node.settings import NodeSettings
from hushcast_protocol.base.addresses import Address, onion_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.central.introduction import SealingKey
from hushcast_protocol.central.network import CentralNetwork, Proxy
from hushcast_runtime.processes.config import load_settings
from hushcast_runtime.storage.state_directory import check_keys
from hushcast_runtime.storage.store import SqliteStore


def onion(number: int) -> Address:
    return onion_address(Seed(bytes([number]) * 32).public())


def proxy(number: int, role: str) -> Proxy:
    return Proxy(Seed(bytes([number]) * 32).public(), onion(number), role)  # type: ignore[arg-type]


NETWORK = CentralNetwork("mine", "hardened", 3600, Seed(b"\1" * 32).public(), SealingKey(b"\7" * 32).public())
PUBLICATIONS, DELIVERIES = proxy(2, "publications"), proxy(3, "deliveries")
WHOLE = central_section(NETWORK, onion(1), [PUBLICATIONS, DELIVERIES])


@pytest.fixture
def server(tmp_path: Path) -> Path:
    """Return the configuration of a server that does not run."""
    file = tmp_path / "server.toml"
    file.write_text(
        f'# mine\nprogram = "central-server"\nstate = "{tmp_path}/state"\n'
        f'[network]\ncarrier = "central"\nname = "mine"  # so\n'
    )
    file.chmod(0o640)
    return file


# First configurations


async def test_init_is_all_that_a_server_needs(tmp_path: Path, home: dict[str, str]) -> None:
    made = await hushcast("init", "central-server", "--network", "mine", "--epoch", "20", env=home)
    config = tmp_path / "hushcast" / "central-server.toml"
    assert (made.code, made.stderr) == (0, "")
    assert made.stdout.decode() == (
        f"{config}: the configuration of a central server\nnext: hushcast run central-server\n"
    )
    settings = load_settings(config, ServerSettings)
    assert (settings.network.name, settings.network.epoch_seconds) == ("mine", 20)
    checked = await hushcast("admin", "check-config", "--show", config, "--json", env=home)
    assert checked.objects[0]["proxies"] == ["publications: none yet", "deliveries: none yet"]
    general = await hushcast("admin", "check-config", config, "--json", env=home)
    assert general.objects == [{"file": str(config), "kind": "central-server"}]


@pytest.mark.parametrize("role", ["publications", "deliveries"])
async def test_init_and_join_are_all_that_a_proxy_needs(
    tmp_path: Path, home: dict[str, str], role: str
) -> None:
    made = await hushcast("init", f"{role}-proxy", "--json", env=home)
    config = tmp_path / "hushcast" / f"{role}-proxy.toml"
    assert made.objects[0]["next"] == [f"hushcast join network.toml --config {config}"]
    unfinished = await hushcast("admin", "check-config", "--show", config, env=home)
    assert "network: this is missing: `hushcast join" in unfinished.error
    lone = central_section(NETWORK, onion(1), [])  # as the server writes it first
    for text in (lone, WHOLE):
        joined = await hushcast("join", "-", "--config", config, stdin=text.encode(), env=home)
        assert (joined.code, joined.stderr) == (0, "")
        assert joined.stdout.decode() == (
            f"{config}: a {role} proxy of the network mine\nnext: hushcast run --config {config}\n"
        )
    settings = load_settings(config, ProxySettings)
    assert (settings.role, settings.network.network()) == (role, NETWORK)
    assert settings.network.proxies() == [], "a proxy needs to know no other"
    general = await hushcast("admin", "check-config", config, "--json", env=home)
    assert general.objects == [{"file": str(config), "kind": f"{role}-proxy"}]


async def test_a_client_joins_and_takes_each_new_list_of_proxies(
    tmp_path: Path, home: dict[str, str]
) -> None:
    await hushcast("init", "client", env=home)
    config = tmp_path / "hushcast" / "node.toml"
    config.write_text(config.read_text() + "[inbox]\nmax_age_days = 3\n")
    lone = central_section(NETWORK, onion(1), [DELIVERIES])
    refused = await hushcast("join", "-", stdin=lone.encode(), env=home)
    assert refused.code == 2
    assert "network.proxies: none is for publications" in refused.error
    assert "[network]" not in config.read_text()
    more = central_section(NETWORK, onion(1), [PUBLICATIONS, DELIVERIES, proxy(4, "deliveries")])
    for text, count, after in ((WHOLE, 2, "run"), (more, 3, "run"), (WHOLE, 2, "run")):
        joined = await hushcast("join", "-", "--json", stdin=text.encode(), env=home)
        assert joined.objects[0]["next"] == [f"hushcast {after} node"]
        settings = load_settings(config, NodeSettings)
        assert len(settings.network.proxies()) == count  # type: ignore[union-attr]
        assert settings.inbox.max_age_days == 3, "all else stays"
    moved = central_section(NETWORK, onion(9), [PUBLICATIONS, DELIVERIES])
    refused = await hushcast("join", "-", stdin=moved.encode(), env=home)
    assert "another address or key of this network's server: ask its operator" in refused.error
    other = WHOLE.replace("mine", "other")
    refused = await hushcast("join", "-", stdin=other.encode(), env=home)
    assert "is in another network: --force leaves it" in refused.error


async def test_a_relay_has_no_part_in_a_central_network(home: dict[str, str]) -> None:
    await hushcast("init", "relay", env=home)
    refused = await hushcast("join", "-", stdin=WHOLE.encode(), env=home)
    assert refused.code == 2
    assert "a central network has no relays" in refused.error


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["init", "deliveries-proxy", "--network", "x"], "others get them by `join`"),
        (["init", "central-server", "--name", "x"], "a machine has one central-server"),
        (["init", "central"], "not one of"),
        (["run", "central-server"], "`hushcast init central-server` makes one"),
        (["doctor", "central-proxy"], "`hushcast init publications-proxy` makes one"),
        (["admin", "central", "admit", "none.toml", "--config", "none.toml"], "cannot be read"),
    ],
)
async def test_wrong_usage(home: dict[str, str], arguments: list[str], told: str) -> None:
    outcome = await hushcast(*arguments, env=home)
    assert outcome.code == 2
    assert told in outcome.error


async def test_proxies_of_both_roles_are_told_apart(home: dict[str, str]) -> None:
    for role in ("publications-proxy", "deliveries-proxy"):
        await hushcast("init", role, env=home)
    outcome = await hushcast("run", "central-proxy", env=home)
    assert outcome.code == 2
    assert "say which with --config" in outcome.error


async def test_a_server_joins_nothing_and_is_no_node(server: Path) -> None:
    for arguments, told in (
        (("join", "-", "--config", server), "is a server's: only relays and clients, and proxies"),
        (("key", "rotate", "--config", server), "a central server's keys are its network"),
    ):
        outcome = await hushcast(*arguments, stdin=WHOLE.encode())
        assert outcome.code == 2
        assert told in outcome.error


# Admitting


@pytest.mark.slow
async def test_a_configuration_is_utf_8_whatever_the_terminal_is(tmp_path: Path, server: Path) -> None:
    server.write_text("# für mich\n" + server.read_text(), "utf-8")
    file = tmp_path / "proxy.toml"
    file.write_text(proxy_section(DELIVERIES))
    done = await trio.run_process(
        [*COMMAND, "admin", "central", "admit", file, "--config", server],
        env=environment(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"),
        capture_stdout=True,
        capture_stderr=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert server.read_text("utf-8").startswith("# für mich\n")
    assert load_settings(server, ServerSettings).proxies() == (DELIVERIES,)


async def test_admit_lists_a_proxy_and_leaves_all_else(tmp_path: Path, server: Path) -> None:
    file = tmp_path / "proxy.toml"
    file.write_text(proxy_section(PUBLICATIONS))
    admit = ("admin", "central", "admit", "--config", server)
    first = await hushcast(*admit, file)
    assert first.code == 0
    assert first.stdout.decode() == (
        f"{server}: lists a proxy for publications\nnext: hushcast run --config {server}\n"
    )
    assert first.stderr == "nobody can use the network yet: a proxy for deliveries is missing\n"
    second = await hushcast(*admit, "-", "--json", stdin=proxy_section(DELIVERIES).encode())
    assert (second.objects[0]["new"], second.objects[0]["missing"]) == (True, [])
    again = await hushcast(*admit, file, "--json")
    assert again.objects[0]["new"] is False
    assert load_settings(server, ServerSettings).proxies() == (PUBLICATIONS, DELIVERIES)
    text = server.read_text()
    assert text.startswith("# mine\n")
    assert 'name = "mine"  # so\n' in text
    assert stat.S_IMODE(server.stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "proxies: this is missing (it takes proxy.toml, as the proxy wrote it)"),
        (WHOLE, "network: there is no such key"),
        (proxy_section(PUBLICATIONS) + proxy_section(DELIVERIES), "(it takes proxy.toml"),
        (proxy_section(DELIVERIES).replace("deliveries", "relay"), "proxies #1.role"),
        (proxy_section(DELIVERIES).replace(DELIVERIES.address, "127.0.0.1:80"), "must be an onion address"),
        (proxy_section(Proxy(PUBLICATIONS.key, onion(9), "publications")), "another role or address"),
        (proxy_section(Proxy(b"\1" * 32, PUBLICATIONS.address, "deliveries")), "two have the same address"),
        ("\x00", "is not TOML"),
        ("#" * 70_000, "at most 65536 bytes"),
    ],
)
async def test_what_is_no_proxy_changes_nothing(server: Path, text: str, told: str) -> None:
    server.write_text(server.read_text() + proxy_section(PUBLICATIONS))
    before = server.read_text()
    outcome = await hushcast("admin", "central", "admit", "-", "--config", server, stdin=text.encode())
    assert (outcome.code, server.read_text()) == (2, before)
    assert told in outcome.error


async def test_a_list_that_cannot_be_edited_is_left_to_people(server: Path) -> None:
    inline = (
        f'{{role = "publications", key = "{PUBLICATIONS.key.hex()}", address = "{PUBLICATIONS.address}"}}'
    )
    server.write_text(f"proxies = [{inline}]\n" + server.read_text())
    before = server.read_text()
    told = await hushcast(
        "admin", "central", "admit", "-", "--config", server, stdin=proxy_section(DELIVERIES).encode()
    )
    assert (told.code, server.read_text()) == (2, before)
    assert "put it in by hand" in told.error


async def test_a_proxy_that_cannot_write_what_it_gives_out_says_so(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    (state / "proxy.toml").mkdir()
    file = tmp_path / "proxy.toml"
    network = central_section(NETWORK, Address("127.0.0.1:1"), [])
    file.write_text(
        f'program = "central-proxy"\nrole = "deliveries"\nstate = "{state}"\ntransport = "tcp"\n{network}'
    )
    outcome = await hushcast("run", "central-proxy", "--config", file)
    assert outcome.code == 2
    assert outcome.stderr.endswith(f"hushcast: {state}/proxy.toml cannot be written: Is a directory\n")
    assert "Traceback" not in outcome.stderr


# Doctors


async def test_of_a_daemon_that_does_not_run_the_state_is_looked_at(tmp_path: Path, server: Path) -> None:
    doctor = ("doctor", "central-server", "--config", server)
    told = await hushcast(*doctor, "--json")
    assert told.code == 1
    assert [(found["check"], found["verdict"]) for found in told.objects] == [
        ("configuration", "good"),
        ("state", "good"),
        ("daemon", "bad"),
        ("service", "warning"),
    ]
    (tmp_path / "state").mkdir(mode=0o755)
    open_to_all = await hushcast(*doctor, "--json")
    assert open_to_all.objects[1]["advice"] == f"chmod 700 {tmp_path}/state"


@pytest.mark.slow
async def test_a_server_that_runs_is_asked_and_takes_a_proxy_at_once(tmp_path: Path) -> None:
    file = tmp_path / "server.toml"
    file.write_text(
        f'program = "central-server"\nstate = "{tmp_path}/s"\ntransport = "tcp"\n'
        f'[network]\ncarrier = "central"\nname = "mine"\n'
    )
    running = await Running.start("run", "central-server", "--config", file)
    network = tmp_path / "s" / "network.toml"
    await until(network.exists)
    told = await hushcast("doctor", "central-server", "--config", file, "--json")
    found = {one["check"]: one["verdict"] for one in told.objects}
    assert found["onion service"] == found["core dumps"] == "good"
    assert found["proxies for publications"] == found["proxies for deliveries"] == "bad"
    assert told.code == 1
    listed = await hushcast(
        "admin",
        "central",
        "admit",
        "-",
        "--config",
        file,
        "--json",
        stdin=proxy_section(Proxy(b"\2" * 32, Address("127.0.0.1:9"), "deliveries")).encode(),
    )
    assert listed.objects[0]["next"] == [], "it was told"
    await until(lambda: "[[network.proxies]]" in network.read_text())
    running.process.terminate()
    outcome = await running.outcome()
    assert outcome.code == 0
    assert "configuration read again" in outcome.stderr
    assert not (tmp_path / "s" / "doctor.sock").exists()


def test_each_role_is_looked_at() -> None:
    other = proxy(4, "deliveries")
    told = examine_proxies([PUBLICATIONS, DELIVERIES, other], frozenset({PUBLICATIONS.key, other.key}))
    assert [(one.check, one.verdict) for one in told] == [
        ("proxies for publications", "good"),
        ("proxies for deliveries", "warning"),
    ]
    assert [one.verdict for one in examine_proxies([DELIVERIES], frozenset())] == ["bad", "bad"]
    verdicts = [examine_server_link(state).verdict for state in ("open", "not listed", "not reached", None)]
    assert verdicts == ["good", "bad", "bad", "bad"]


async def test_a_servers_state_can_be_kept_and_put_back(tmp_path: Path, server: Path) -> None:
    """Its keys are the network."""
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    for name in ("server.key", "service.key", "sealing.key", "group.key"):
        (state / name).write_bytes(name.encode().ljust(32))
    (state / "state.db").touch()
    kept = await hushcast("admin", "backup", "--config", server, tmp_path / "kept", "--json")
    assert kept.objects[0]["role"] == "central-server"
    (state / "server.key").write_bytes(b"other".ljust(32))
    back = await hushcast("admin", "restore", "--config", server, tmp_path / "kept", "--force")
    assert back.code == 0
    assert (state / "server.key").read_bytes() == b"server.key".ljust(32)


@pytest.mark.parametrize("gone", ["server.key", "service.key", "sealing.key", "group.key"])
async def test_a_server_that_lost_a_key_does_not_start_as_another(
    tmp_path: Path, server: Path, gone: str
) -> None:
    server.write_text('transport = "tcp"\n' + server.read_text())
    await _refuses_to_start(tmp_path / "state", gone, "run", "central-server", "--config", server)


@pytest.mark.parametrize("gone", ["proxy.key", "service.key"])
async def test_a_proxy_that_lost_a_key_does_not_start_as_another(tmp_path: Path, gone: str) -> None:
    file = tmp_path / "proxy.toml"
    file.write_text(f'program = "central-proxy"\nrole = "deliveries"\nstate = "{tmp_path}/state"\n{WHOLE}')
    await _refuses_to_start(tmp_path / "state", gone, "run", "central-proxy", "--config", file)


async def test_a_directory_that_lost_its_signing_key_does_not_start_as_another(tmp_path: Path) -> None:
    file = tmp_path / "directory.toml"
    file.write_text(
        f'program = "directory"\nstate = "{tmp_path}/state"\ntransport = "tcp"\n[network]\nname = "mine"\n'
    )
    await _refuses_to_start(tmp_path / "state", "directory.key", "run", "directory", "--config", file)


async def _refuses_to_start(state: Path, gone: str, *command: str | Path) -> None:
    state.mkdir(mode=0o700)
    for name in {"server.key", "service.key", "sealing.key", "group.key", "proxy.key"} - {gone}:
        (state / name).write_bytes(b"\1" * 32)
    with closing(sqlite3.connect(state / "state.db")) as database:
        database.execute("PRAGMA user_version = 1")
    outcome = await hushcast(*command)
    assert outcome.code == 2
    assert f"{state / gone} is gone" in outcome.error
    assert "hushcast admin restore" in outcome.error
    assert not (state / gone).exists()


def test_a_first_start_that_was_cut_short_lost_no_keys(tmp_path: Path) -> None:
    """The database is opened before keys are drawn; it has a version once it holds anything."""
    SqliteStore(tmp_path / "state.db").close()
    check_keys(tmp_path, ("server.key",))
