"""`hushcast admin directory init`, `members`, `audit` and `evidence`: a set made, put together, looked at."""

from __future__ import annotations

import json
import signal
import stat
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from running import WITHIN, Running, environment, hushcast, until

from hushcast_cli.operate.directory_audit import MOST_EPOCHS
from hushcast_cli.operate.directory_set import MOST_RELAYS, MOST_WORK
from hushcast_directory.client.audit import MAX_AUDITED
from hushcast_directory.server.process import KEY_FILES
from hushcast_directory.server.settings import DirectorySettings
from hushcast_node.settings import NetworkFile
from hushcast_protocol.authorities.actions import AuthorityState
from hushcast_protocol.authorities.ballots import Cast
from hushcast_protocol.authorities.chain import ChainState
from hushcast_protocol.authorities.evidence import Evidence
from hushcast_protocol.authorities.seat_admission import MAX_WORK, SeatAdmission
from hushcast_protocol.base.addresses import onion_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, signature
from hushcast_protocol.base.roster import MAX_RELAYS
from hushcast_protocol.base.shard_count import SHARD_SIZE
from hushcast_protocol.base.wire import encode
from hushcast_runtime.files import private_directory, write_private
from hushcast_runtime.processes.config import NetworkSection, load_settings, parse_toml
from hushcast_runtime.processes.network_file import network_section
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.state_layout import DATABASE
from hushcast_runtime.storage.store import SqliteStore


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder to be made, of a short name: states have sockets in them; pytest's own path may be long."""
    with tempfile.TemporaryDirectory(prefix="hushcast-set-") as above:
        yield Path(above) / "set"


RULES = ("--newcomers", "20", "--growth", "2", "--age", "--work", "12")


def test_bounds_on_the_command_line_are_those_of_the_protocol() -> None:
    assert (MOST_WORK, MOST_RELAYS, MOST_EPOCHS) == (MAX_WORK, MAX_RELAYS, MAX_AUDITED)


async def test_init_makes_a_set_that_directories_take(folder: Path) -> None:
    size = ("--shard-size", "20")
    made = await hushcast(
        "admin", "directory", "init", folder, "--authorities", "3", "--network", "ours", *RULES, *size
    )
    assert (made.code, made.stderr) == (0, "")
    joined = parse_toml((folder / "network.toml").read_bytes(), "network.toml", NetworkFile).network
    assert (joined.name, joined.quorum) == ("ours", 2)
    pinned = joined.pinned("tor")
    sets = set()
    for number in (1, 2, 3):
        own = folder / str(number)
        settings = load_settings(own / "directory.toml", DirectorySettings)
        assert (await hushcast("admin", "check-config", own / "directory.toml")).code == 0
        seed, service = (Seed((own / "state" / name).read_bytes()) for name in KEY_FILES)
        assert settings.state_path() == own / "state"
        sitting = settings.sitting(seed.public())
        assert sitting is not None
        sets.add(sitting.authorities)
        member = next(one for one in pinned.members if one.key == seed.public())
        assert member.address == onion_address(service.public())
        for path, mode in ((own, 0o700), (own / "state", 0o700), (own / "directory.toml", 0o600)):
            assert stat.S_IMODE(path.stat().st_mode) == mode
    (authorities,) = sets
    assert (len(authorities.keys), authorities.quorum) == (3, 2)
    assert authorities.admission == SeatAdmission(20, 20, True, 12)
    assert authorities.shard_size == 20
    again = await hushcast("admin", "directory", "init", folder, "--authorities", "3")
    assert again.code == 2
    assert "is not empty" in again.error


@pytest.mark.parametrize("quorum", ["2", "6"])
async def test_a_quorum_is_more_than_half(tmp_path: Path, quorum: str) -> None:
    folder = tmp_path / "set"
    made = await hushcast("admin", "directory", "init", folder, "--authorities", "5", "--quorum", quorum)
    assert made.code == 2
    assert "between 3 and 5" in made.error
    assert not folder.exists()


async def test_a_growth_that_caps_nothing_is_refused(tmp_path: Path) -> None:
    made = await hushcast(
        "admin", "directory", "init", tmp_path / "set", "--authorities", "3", "--growth", "2"
    )
    assert made.code == 2
    assert "--growth needs --newcomers" in made.error
    assert not (tmp_path / "set").exists()


def single(number: int, name: str = "ours") -> str:
    key, service = Seed(bytes([number]) * 32).public(), Seed(bytes([100 + number]) * 32).public()
    return network_section(NetworkSection(name=name), onion_address(service), key.hex())


async def test_members_puts_a_set_together_from_what_each_gave_out(tmp_path: Path) -> None:
    files = []
    for number in (1, 2, 3):
        files.append(tmp_path / f"{number}.toml")
        files[-1].write_text(single(number))
    made = await hushcast("admin", "directory", "members", *files, "--quorum", "3", *RULES)
    assert made.code == 0
    config = (
        f'program = "directory"\nstate = "{tmp_path}/state"\n\n[network]\nname = "ours"\n\n'
        + made.stdout.decode()
    )
    assert tomllib.loads(config)["authorities"]["quorum"] == 3
    (tmp_path / "directory.toml").write_text(config)
    settings = load_settings(tmp_path / "directory.toml", DirectorySettings)
    sitting = settings.sitting(Seed(bytes([2]) * 32).public())
    assert sitting is not None
    assert sitting.authorities.shard_size == SHARD_SIZE
    never = await hushcast("admin", "directory", "members", *files, "--shard-size", "0")
    assert tomllib.loads(never.stdout.decode())["authorities"]["shard_size"] == 0
    (tmp_path / "other.toml").write_text(single(4, "theirs"))
    (tmp_path / "several.toml").write_text("[network]\nname = 'ours'\nquorum = 1\nauthorities = []\n")
    for wrong, why in (
        ([files[0], files[0]], "given twice"),
        ([files[0], tmp_path / "other.toml"], "another network"),
        ([tmp_path / "several.toml"], "each one's own"),
        ([tmp_path / "none.toml"], "cannot be read"),
        ([*files, *files, *files, *files], "too many"),
    ):
        outcome = await hushcast("admin", "directory", "members", *wrong)
        assert outcome.code == 2
        assert why in outcome.error


def two_ballots(network: bytes, author: Seed) -> Evidence:
    bodies = [encode(Cast(network, 7, author.public(), bytes([one]) * 32)) for one in (1, 2)]
    first, second = (Signed(body, signature(author, SignaturePurpose.BALLOT, body)) for body in bodies)
    return Evidence(author.public(), first, second)


async def test_evidence_is_shown_and_checked_elsewhere(tmp_path: Path, folder: Path) -> None:
    await hushcast("admin", "directory", "init", folder, "--authorities", "3", "--network", "ours")
    config = folder / "1" / "directory.toml"
    settings = load_settings(config, DirectorySettings)
    accused = Seed((folder / "2" / "state" / KEY_FILES[0]).read_bytes())
    own = Seed((folder / "1" / "state" / KEY_FILES[0]).read_bytes())
    sitting = settings.sitting(own.public())
    assert sitting is not None
    network = settings.network.network().id
    await _keep(
        folder / "1" / "state", AuthorityState(ChainState(sitting.authorities)), two_ballots(network, accused)
    )
    shown = await hushcast("admin", "directory", "evidence", "--config", config)
    assert shown.stdout.decode() == f"epoch 7: two statements, by {accused.public().hex()}\n"
    lines = await hushcast("admin", "directory", "evidence", "--config", config, "--json")
    assert [one["accused"] for one in lines.objects] == [[accused.public().hex()]]
    (tmp_path / "proofs").write_bytes(lines.stdout)
    node = tmp_path / "node.toml"
    joined = (folder / "network.toml").read_text()
    node.write_text(f'program = "node"\nrole = "client"\nstate = "{tmp_path}/node"\n\n{joined}')
    there = await hushcast("admin", "directory", "evidence", tmp_path / "proofs", "--config", node)
    assert there.stdout == shown.stdout
    stranger = two_ballots(network, Seed(bytes(32)))
    line = json.dumps({"proof": encode(stranger).hex()}).encode()
    told = await hushcast("admin", "directory", "evidence", "-", "--config", node, stdin=line)
    assert "none of the directories of the configuration" in told.stdout.decode()
    foreign = json.dumps({"proof": encode(two_ballots(bytes(32), accused)).hex()}).encode()
    refused = await hushcast("admin", "directory", "evidence", "-", "--config", node, stdin=foreign)
    assert refused.code == 2
    assert "proves nothing" in refused.error


async def _keep(state: Path, kept: AuthorityState, evidence: Evidence) -> None:
    store = SqliteStore(state / DATABASE)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.run)
        await store.write(Change("evidence", b"1", encode(evidence)), Change("authority", b"", encode(kept)))
        nursery.cancel_scope.cancel()
    store.close()


async def test_an_audit_says_who_is_not_reached(tmp_path: Path) -> None:
    """Over loopback, where nobody listens: what is found of directories that answer, other tests tell."""
    key = Seed(bytes(32)).public().hex()
    config = tmp_path / "node.toml"
    config.write_text(
        f'program = "node"\nrole = "client"\nstate = "{tmp_path}/state"\ntransport = "tcp"\n\n'
        f'[network]\nname = "ours"\n'
        f'directory = "127.0.0.1:9"\ndirectory_key = "{key}"\n'
    )
    env = environment(HOME=str(tmp_path))
    outcome = await hushcast("admin", "directory", "audit", "--config", config, "--json", env=env)
    assert outcome.code == 1
    found = {one["check"]: one for one in outcome.objects}
    assert found[f"directory 1 ({key[:8]}…)"]["verdict"] == "warning"
    assert found["agreement"]["verdict"] == "bad"
    assert "not well: agreement" in outcome.stderr
    assert not (tmp_path / "state").exists()


# The doctor


async def test_of_a_directory_that_does_not_run_the_state_is_looked_at(tmp_path: Path) -> None:
    config = tmp_path / "directory.toml"
    config.write_text(f'program = "directory"\nstate = "{tmp_path}/s"\n[network]\nname = "mine"\n')
    told = await hushcast("doctor", "directory", "--config", config, "--json")
    assert told.code == 1
    found = [(one["check"], one["verdict"]) for one in told.objects]
    assert found[1:] == [("state", "good"), ("daemon", "bad"), ("service", "warning")]


@pytest.mark.slow
async def test_a_directory_that_runs_is_asked(tmp_path: Path) -> None:
    names, config = tmp_path / "names", tmp_path / "directory.toml"
    names.write_text(f"{Seed(bytes(32)).public().hex()}  # ours\n")
    config.write_text(
        f'program = "directory"\nstate = "{tmp_path}/s"\ntransport = "tcp"\n'
        f'first_roster = 2\nrelays = "{names}"\n'
        '[network]\nname = "mine"\n'
    )
    running = await Running.start("run", "directory", "--config", config)
    await until((tmp_path / "s" / "network.toml").exists)
    found: dict[str, Any] = {"roster": {"found": "not known yet"}}
    while found["roster"]["found"].startswith("not known yet"):  # what it kept is being read
        told = await hushcast("doctor", "directory", "--config", config, "--json")
        found = {one["check"]: one for one in told.objects if one["check"] != "open files"}
    assert found["onion service"]["verdict"] == found["core dumps"]["verdict"] == "good"
    assert found["roster"]["found"].startswith("none yet: 0 of 2 relays")
    assert found["closed network"]["found"] == "1 name loaded, 0 of them listed"
    assert {one["verdict"] for one in found.values()} == {"good", "warning"}
    names.write_text("")
    running.process.send_signal(signal.SIGHUP)
    while True:
        told = await hushcast("doctor", "directory", "--config", config)
        if "0 names loaded" in told.stdout.decode():
            break
    running.process.terminate()
    outcome = await running.outcome()
    assert outcome.code == 0
    assert not (tmp_path / "s" / "doctor.sock").exists()


@pytest.mark.slow
async def test_directories_of_a_set_look_at_each_other(folder: Path) -> None:
    """Over loopback; of three two run, which agree once relays have come, so there is no roster here."""
    seeds = [Seed(bytes([number]) * 32) for number in (1, 2, 3)]
    members = "".join(
        f'[[authorities.members]]\nkey = "{seed.public().hex()}"\naddress = "127.0.0.1:{port}"\n'
        for seed, port in zip(seeds, (17411, 17412, 17413), strict=True)
    )
    folder.mkdir()
    config = folder / "directory.toml"
    config.write_text(
        f'program = "directory"\nstate = "{folder}/s"\ntransport = "tcp"\n'
        f'[network]\nname = "mine"\nepoch_seconds = 60\n'
        f"[authorities]\nquorum = 2\n{members}"
    )
    private_directory(folder / "s")
    write_private(folder / "s" / KEY_FILES[0], seeds[0].reveal())
    running = await Running.start("run", "directory", "--config", config)
    with trio.fail_after(WITHIN):
        while True:
            told = await hushcast("doctor", "directory", "--config", config, "--json")
            found = {one["check"]: one for one in told.objects}
            if "0 of 2 reached, not" in found.get("other directories", {}).get("found", ""):
                break
    assert told.code == 1
    assert found["other directories"]["verdict"] == "bad"
    assert seeds[1].public().hex()[:8] in found["other directories"]["found"]
    assert "127.0.0.1" not in told.stdout.decode()
    assert found["address"]["verdict"] == found["evidence"]["verdict"] == "good"
    config.write_text(config.read_text().replace(seeds[0].public().hex(), bytes(32).hex()))
    running.process.terminate()
    assert (await running.outcome()).code == 0
    refused = await hushcast("run", "directory", "--config", config)
    assert (refused.code, "own key is not among them" in refused.stderr) == (2, True)
