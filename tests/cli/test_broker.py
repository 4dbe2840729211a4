"""Networks of brokers: first configurations, joining, seats, the tree, doctors, as a person types it."""

from __future__ import annotations

import signal
import stat
from pathlib import Path

import pytest
import trio
from running import WITHIN, Running, hushcast, until

from hushcast_brokers.broker.settings import BrokerSettings, load_broker
from hushcast_brokers.broker.tree_report import ReportedBroker, TreeReport
from hushcast_brokers.broker_sections import broker_lines
from hushcast_brokers.network_file import BrokersNetworkSection, brokers_section
from hushcast_cli.configuration.broker_positions import load_root
from hushcast_cli.operate.tree_picture import draw
from hushcast_node.settings import NodeSettings
from hushcast_protocol.base.addresses import Address, onion_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_runtime.processes.config import load_settings


def key(number: int) -> bytes:
    return Seed(bytes([number]) * 32).public()


def lines(number: int, role: str = "inner", parent: int | None = None, at: int | None = None) -> str:
    """Return what broker `number` gives out."""
    address = onion_address(key(number if at is None else at))
    return broker_lines(key(number), address, role, None if parent is None else key(parent).hex())


NETWORK = BrokersNetwork("mine", "clear", 3600, key(1))
WHOLE = brokers_section(NETWORK, onion_address(key(1)))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return the configuration of a root that does not run."""
    file = tmp_path / "root.toml"
    file.write_text(
        f'# mine\nprogram = "broker"\nrole = "root"\nstate = "{tmp_path}/state"\n'
        '[network]\ncarrier = "brokers"\nname = "mine"  # so\n'
    )
    file.chmod(0o640)
    return file


# First configurations


async def test_init_is_all_that_a_root_needs(tmp_path: Path, home: dict[str, str]) -> None:
    made = await hushcast("init", "broker-root", "--network", "mine", "--epoch", "20", env=home)
    config = tmp_path / "hushcast" / "broker-root.toml"
    assert (made.code, made.stderr) == (0, "")
    assert made.stdout.decode() == (
        f"{config}: the configuration of a root broker\nnext: hushcast run broker\n"
    )
    settings = load_root(config)
    assert (settings.network.name, settings.network.epoch_seconds) == ("mine", 20)
    checked = await hushcast("admin", "check-config", "--show", config, "--json", env=home)
    assert (checked.objects[0]["kind"], checked.objects[0]["brokers"]) == ("root-broker", ["none yet"])
    drawn = await hushcast("admin", "broker", "tree", env=home)
    assert drawn.code == 0, "states of others are not looked at where there is none"
    assert "the root does not run" in drawn.stdout.decode()


@pytest.mark.parametrize(("role", "options"), [("edge", []), ("inner", ["--role", "inner"])])
async def test_init_and_join_are_all_that_a_broker_needs(
    tmp_path: Path, home: dict[str, str], role: str, options: list[str]
) -> None:
    made = await hushcast("init", "broker", *options, "--json", env=home)
    config = tmp_path / "hushcast" / "broker.toml"
    join = f"hushcast join network.toml --config {config}"
    assert made.objects == [{"file": str(config), "kind": f"{role}-broker", "next": [join]}]
    unfinished = await hushcast("admin", "check-config", "--show", config, env=home)
    assert "network: this is missing: `hushcast join" in unfinished.error
    joined = await hushcast("join", "-", "--config", config, stdin=WHOLE.encode(), env=home)
    assert (joined.code, joined.stderr) == (0, "")
    assert joined.stdout.decode() == (
        f"{config}: an {role} broker of the network mine\nnext: hushcast run --config {config}\n"
    )
    settings = load_broker(config)
    assert isinstance(settings, BrokerSettings)
    assert (settings.role, settings.network.network()) == (role, NETWORK)
    general = await hushcast("admin", "check-config", config, "--json", env=home)
    assert general.objects == [{"file": str(config), "kind": f"{role}-broker"}]
    moved = brokers_section(NETWORK, onion_address(key(9)))
    refused = await hushcast("join", "-", "--config", config, stdin=moved.encode(), env=home)
    assert "another address or key of this network's root: ask its operator" in refused.error


async def test_a_client_joins_and_a_relay_has_no_part(tmp_path: Path, home: dict[str, str]) -> None:
    await hushcast("init", "client", env=home)
    config = tmp_path / "hushcast" / "node.toml"
    joined = await hushcast("join", "-", stdin=WHOLE.encode(), env=home)
    assert joined.stdout.decode() == f"{config}: a client of the network mine\nnext: hushcast run node\n"
    settings = load_settings(config, NodeSettings)
    assert isinstance(settings.network, BrokersNetworkSection)
    assert settings.network.network() == NETWORK
    config.unlink()
    await hushcast("init", "relay", env=home)
    refused = await hushcast("join", "-", stdin=WHOLE.encode(), env=home)
    assert refused.code == 2
    assert "a network of brokers has no relays" in refused.error


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["init", "broker", "--network", "x"], "others get them by `join`"),
        (["init", "broker-root", "--role", "edge"], "--role is a broker's, which is not the root"),
        (["init", "broker", "--name", "x"], "a machine has one broker"),
        (["run", "broker"], "`hushcast init broker-root` makes one"),
        (["broker", "admit", "none.toml", "--config", "none.toml"], "cannot be read"),
        (["broker", "tree", "--config", "none.toml"], "cannot be read"),
    ],
)
async def test_wrong_usage(home: dict[str, str], arguments: list[str], told: str) -> None:
    outcome = await hushcast(*arguments, env=home)
    assert outcome.code == 2
    assert told in outcome.error


async def test_a_root_joins_nothing_and_is_no_node(root: Path) -> None:
    for arguments, told in (
        (
            ("join", "-", "--config", root),
            "is a root's: only relays and clients, and proxies and other brokers",
        ),
        (("key", "rotate", "--config", root), "a root's keys are its network"),
    ):
        outcome = await hushcast(*arguments, stdin=WHOLE.encode())
        assert outcome.code == 2
        assert told in outcome.error


# Seats


async def test_admit_gives_a_seat_and_leaves_all_else(tmp_path: Path, root: Path) -> None:
    file = tmp_path / "broker.toml"
    file.write_text(lines(2))
    admit = ("broker", "admit", "--config", root)
    first = await hushcast(*admit, file)
    short = f"{key(2).hex()[:16]}…"
    assert first.stdout.decode() == (
        f"{root}: lists the inner broker {short}, below the root\nnext: hushcast run --config {root}\n"
    )
    assert first.stderr == "nobody can subscribe yet: an edge broker is missing\n"
    wished = await hushcast(*admit, "-", "--json", stdin=lines(3, "edge", 2).encode())
    assert (wished.objects[0]["parent"], wished.objects[0]["edges"]) == (key(2).hex(), True)
    chosen = await hushcast(
        *admit, "-", "--parent", key(2).hex()[:8], "--json", stdin=lines(4, "edge").encode()
    )
    assert chosen.objects[0]["parent"] == key(2).hex()
    at_root = await hushcast(*admit, "-", "--parent", "root", "--json", stdin=lines(5, "edge", 2).encode())
    assert at_root.objects[0]["parent"] is None
    for number in (4, 5):  # what is done already is no error, whatever the broker asks for
        again = await hushcast(*admit, "-", "--json", stdin=lines(number, "edge").encode())
        assert (again.code, again.objects[0]["new"]) == (0, False)
    assert [one.key for one in load_root(root).listed] == [key(number).hex() for number in (2, 3, 4, 5)]
    text = root.read_text()
    assert text.startswith("# mine\n")
    assert 'name = "mine"  # so\n' in text
    assert stat.S_IMODE(root.stat().st_mode) == 0o640
    drawn = await hushcast("admin", "broker", "tree", "--config", root)
    assert [line.rstrip("…").rstrip("0123456789abcdef") for line in drawn.stdout.decode().splitlines()] == [
        "network mine, 5 brokers, tree not signed: the root does not run",
        "root",
        "├── inner ",
        "│   ├── edge ",
        "│   └── edge ",
        "└── edge ",
    ]


@pytest.mark.parametrize(
    ("text", "options", "told"),
    [
        ("", [], "brokers: this is missing (it takes broker.toml, as the broker wrote it)"),
        (WHOLE, [], "network: there is no such key"),
        (lines(4) + lines(5), [], "(it takes broker.toml"),
        (lines(4, "root"), [], "brokers #1.role"),
        (broker_lines(key(4), Address("127.0.0.1:80"), "edge", None), [], "must be an onion address"),
        (lines(2, "edge"), [], "lists this broker with another role, address or parent"),
        (lines(2, at=9), [], "`hushcast admin broker replace` it"),
        (lines(4, at=2), [], "#1 and #3 have the same address: each broker has one of its own"),
        (lines(4, parent=9), [], "brokers #3.parent: it is not listed: admit it first"),
        (lines(4, parent=3), [], "brokers #3.parent: an edge broker has clients below it, no brokers"),
        (lines(4, parent=4), [], "in a loop, or more than 8 below each other: give one of them another"),
        (lines(2), ["--parent", key(3).hex()], "lists this broker with another role, address or parent"),
        (lines(4), ["--parent", "abc"], "give at least 8 digits"),
        (lines(4), ["--parent", "00000000"], "no broker listed with a key that begins with '00000000'"),
        ("\x00", [], "is not TOML"),
        ("#" * 70_000, [], "at most 65536 bytes"),
    ],
)
async def test_what_has_no_seat_changes_nothing(root: Path, text: str, options: list[str], told: str) -> None:
    root.write_text(root.read_text() + lines(2) + lines(3, "edge", 2))
    before = root.read_text()
    outcome = await hushcast("admin", "broker", "admit", "-", "--config", root, *options, stdin=text.encode())
    assert (outcome.code, root.read_text()) == (2, before)
    assert told in outcome.error


async def test_a_tree_that_would_be_too_deep_is_refused(root: Path) -> None:
    deep = "".join(lines(n, parent=n - 1 if n > 2 else None) for n in range(2, 10))
    root.write_text(root.read_text() + deep)
    before = root.read_text()
    outcome = await hushcast(
        "admin", "broker", "admit", "-", "--config", root, stdin=lines(10, "edge", 9).encode()
    )
    assert (outcome.code, root.read_text()) == (2, before)
    assert "more than 8 below each other: give one of them another parent" in outcome.error
    nearer = await hushcast(
        *("broker", "admit", "-", "--config", root, "--parent", key(8).hex()),
        stdin=lines(10, "edge", 9).encode(),
    )
    assert nearer.code == 0


async def test_a_broker_takes_the_place_of_another_and_all_below_it(root: Path) -> None:
    text = lines(2) + "# two below it\n" + lines(3, "edge", 2) + lines(4, "edge", 2) + lines(5, "edge")
    root.write_text(root.read_text() + text)
    replace = ("broker", "replace", "--config", root)
    done = await hushcast(*replace, key(2).hex()[:12], "-", stdin=lines(6).encode())
    assert done.code == 0, done.stderr
    assert (
        f"{key(6).hex()[:16]}… has the place of {key(2).hex()[:16]}…, with 2 below it" in done.stdout.decode()
    )
    assert root.read_text().endswith(
        lines(6) + "# two below it\n" + lines(3, "edge", 6) + lines(4, "edge", 6) + lines(5, "edge")
    )
    for key_of, given, told in (
        (key(2), lines(7), "no broker listed"),
        (key(6), lines(7, "edge"), 'whoever takes its place needs `role = "inner"`'),
        (key(6), lines(7, at=3), "have the same address"),
        (key(3), lines(4, "edge"), "have the same key: a broker has one seat, and one parent"),
    ):
        before = root.read_text()
        refused = await hushcast(*replace, key_of.hex(), "-", stdin=given.encode())
        assert (refused.code, root.read_text()) == (2, before)
        assert told in refused.error


async def test_a_list_that_cannot_be_edited_is_left_to_people(root: Path) -> None:
    inline = f'{{role = "inner", key = "{key(2).hex()}", address = "{onion_address(key(2))}"}}'
    root.write_text(f"brokers = [{inline}]\n" + root.read_text())
    before = root.read_text()
    told = await hushcast("admin", "broker", "admit", "-", "--config", root, stdin=lines(3).encode())
    assert (told.code, root.read_text()) == (2, before)
    assert "put it in by hand" in told.error


async def test_other_brokers_list_nobody(tmp_path: Path) -> None:
    file = tmp_path / "edge.toml"
    file.write_text(f'program = "broker"\nrole = "edge"\nstate = "{tmp_path}/s"\n' + WHOLE)
    told = await hushcast("admin", "broker", "admit", "-", "--config", file, stdin=lines(3).encode())
    assert told.code == 2
    assert "is an edge broker's: the root alone lists brokers" in told.error
    gone = await hushcast("admin", "broker", "tree", "--config", file)
    assert gone.code == 1
    assert "does not run, or holds no tree yet" in gone.error


def test_the_picture_says_whom_this_broker_sees() -> None:
    told = TreeReport(
        "mine",
        7,
        [
            ReportedBroker("r" * 64, "root", "", None, "connected"),
            ReportedBroker("a" * 64, "inner", "", "r" * 64, "this"),
            ReportedBroker("b" * 64, "edge", "", "a" * 64, "away"),
            ReportedBroker("c" * 64, "inner", "", "r" * 64, "not seen"),
        ],
    )
    assert draw(told) == [
        "network mine, 4 brokers, tree version 7",
        f"root {'r' * 16}… connected",
        f"├── inner {'a' * 16}… this broker",
        f"│   └── edge {'b' * 16}… away",
        f"└── inner {'c' * 16}…",
    ]


# Doctors


async def test_of_a_broker_that_does_not_run_the_state_is_looked_at(tmp_path: Path, root: Path) -> None:
    told = await hushcast("doctor", "--config", root, "--json")
    assert told.code == 1
    assert [(found["check"], found["verdict"]) for found in told.objects] == [
        ("configuration", "good"),
        ("state", "good"),
        ("daemon", "bad"),
        ("service", "warning"),
    ]
    assert told.objects[3]["advice"] == f"hushcast run --config {root}"


@pytest.mark.slow
async def test_a_root_that_runs_is_asked_and_signs_a_new_tree_at_once(tmp_path: Path) -> None:
    file = tmp_path / "root.toml"
    file.write_text(
        f'program = "broker"\nrole = "root"\nstate = "{tmp_path}/s"\ntransport = "tcp"\n'
        '[network]\ncarrier = "brokers"\nname = "mine"\n'
    )
    running = await Running.start("run", "broker", "--config", file)
    await until((tmp_path / "s" / "network.toml").exists)
    given = broker_lines(b"\2" * 32, Address("127.0.0.1:9"), "edge", None).encode()
    listed = await hushcast("admin", "broker", "admit", "-", "--config", file, "--json", stdin=given)
    assert listed.objects[0]["next"] == [], "it was told"
    seen: list[object] = []
    with trio.fail_after(WITHIN):
        while len(seen) < 2:
            told = (await hushcast("admin", "broker", "tree", "--config", file, "--json")).objects[0]
            seen = [place["seen"] for place in told["brokers"]]
    assert (seen, told["version"]) == (["this", "away"], 2)
    doctor = await hushcast("doctor", "broker", "--config", file, "--json")
    found = {one["check"]: one["verdict"] for one in doctor.objects}
    assert found["onion service"] == found["core dumps"] == "good"
    assert (found["brokers below"], doctor.code) == ("bad", 1)
    own = (await hushcast("admin", "broker", "tree", "--config", file, "--json")).objects[0]["brokers"][0][
        "key"
    ]
    itself = broker_lines(bytes.fromhex(own), Address("127.0.0.1:8"), "inner", None).encode()
    refused = await hushcast("admin", "broker", "admit", "-", "--config", file, stdin=itself)
    assert "this is the root itself, which has its seat already" in refused.error
    address = told["brokers"][0]["address"]
    there = broker_lines(b"\3" * 32, Address(address), "inner", None)
    refused = await hushcast("admin", "broker", "admit", "-", "--config", file, stdin=there.encode())
    assert "this broker has the root's address" in refused.error
    file.write_text(file.read_text() + there)  # by hand
    running.process.send_signal(signal.SIGHUP)
    still = await hushcast("admin", "broker", "tree", "--config", file, "--json")
    assert len(still.objects[0]["brokers"]) == 2
    running.process.terminate()
    outcome = await running.outcome()
    assert outcome.code == 0
    assert "one has the address of this root" in outcome.stderr
    assert not (tmp_path / "s" / "doctor.sock").exists()
    assert not (tmp_path / "s" / "tree.sock").exists()


async def test_a_roots_state_can_be_kept_and_put_back(tmp_path: Path, root: Path) -> None:
    """Its keys are the network."""
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    for name in ("broker.key", "service.key"):
        (state / name).write_bytes(name.encode().ljust(32))
    (state / "state.db").touch()
    kept = await hushcast("admin", "backup", "--config", root, tmp_path / "kept", "--json")
    assert kept.objects[0]["role"] == "root-broker"
    (state / "broker.key").write_bytes(b"other".ljust(32))
    back = await hushcast("admin", "restore", "--config", root, tmp_path / "kept", "--force")
    assert back.code == 0
    assert (state / "broker.key").read_bytes() == b"broker.key".ljust(32)


async def test_a_tomography_service_joins_is_checked_and_is_no_node(
    tmp_path: Path, home: dict[str, str]
) -> None:
    file = tmp_path / "hushcast" / "tomography.toml"
    made = await hushcast("init", "tomography", "--json", env=home)
    join = f"hushcast join network.toml --config {file}"
    assert made.objects == [{"file": str(file), "kind": "tomography-service", "next": [join]}]
    unfinished = await hushcast("admin", "check-config", "--show", file, env=home)
    assert unfinished.code == 2
    assert "network: this is missing: `hushcast join" in unfinished.error
    joined = await hushcast("join", "-", "--config", file, stdin=WHOLE.encode(), env=home)
    assert (joined.code, joined.stderr) == (0, "")
    assert joined.stdout.decode() == (
        f"{file}: a tomography service of the network mine\nnext: hushcast run --config {file}\n"
    )
    checked = await hushcast("admin", "check-config", "--show", file, "--json", env=home)
    assert checked.objects[0]["cap"] == ["8 sources of each edge broker on one topic"]
    known = await hushcast("admin", "check-config", file, "--json", env=home)
    assert known.objects[0]["kind"] == "tomography-service"
    looked = await hushcast("doctor", "--config", file, env=home)
    assert looked.stdout.decode().startswith(f"✔ configuration: {file}, a tomography service's\n")
    asked = ("tomography", "ask", "news", "--from", "3b6a27bc")
    unnamed = await hushcast(*asked, "--k", "5", "--config", file, env=home)
    assert unnamed.code == 2
    assert "names no tomography service: give its tomography.toml with --service" in unnamed.error
    rotated = await hushcast("admin", "key", "rotate", "--config", file, env=home)
    assert rotated.code == 2
    assert "is another one: empty its state" in rotated.error
