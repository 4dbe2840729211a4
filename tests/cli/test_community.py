"""`hushcast admin community`: keepers' directories, and a daemon's setting, as a person types it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from running import Outcome, hushcast

from hushcast_brokers.broker_sections import broker_lines
from hushcast_brokers.community.keeper_directory import load, read_charter
from hushcast_brokers.network_file import brokers_section
from hushcast_node.settings import NodeSettings
from hushcast_protocol.base.addresses import onion_address
from hushcast_protocol.base.crypto.key_agreement import agreement_public
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_runtime.processes.config import load_settings


def key(number: int) -> bytes:
    return Seed(bytes([number]) * 32).public()


WHOLE = brokers_section(BrokersNetwork("mine", "community", 3600, key(1)), onion_address(key(1)))
OTHER = brokers_section(BrokersNetwork("mine", "clear", 3600, key(1)), onion_address(key(1)))


async def typed(*arguments: object) -> Outcome:
    return await hushcast("admin", "community", *map(str, arguments))


@pytest.fixture
def network(tmp_path: Path) -> Path:
    file = tmp_path / "network.toml"
    file.write_text(WHOLE)
    return file


async def test_a_keeper_admits_and_expels(tmp_path: Path, network: Path) -> None:
    club, broker = tmp_path / "club", tmp_path / "broker.toml"
    broker.write_text(broker_lines(key(2), onion_address(key(2)), "edge", None))
    made = await typed("new", club, network)
    name = made.stdout.decode().strip()
    assert name == load(club).key.hex()
    assert f'communities = ["{name}"]' in made.stderr
    assert stat.S_IMODE((club / "keeper.key").stat().st_mode) == 0o600
    admitted = await typed("admit", club, "root", broker, key(3).hex(), "--as", "Alice, laptop")
    assert admitted.stdout == b"epoch 1, 3 members, begins in 120 seconds\n"
    assert f"hushcast admin community send {club}" in admitted.stderr
    kept = load(club)
    assert list(kept.members) == [key(1), key(2), key(3)]
    first = kept.charter
    assert first is not None
    assert first.members.keys() == {agreement_public(key(number)) for number in (1, 2, 3)}
    [told] = (await typed("expel", club, key(3).hex(), "--in", 0, "--json")).objects
    assert (told["epoch"], told["members"], told["community"]) == (2, 2, name)
    second = read_charter(club / "charter", load(club).network)
    assert agreement_public(key(3)) not in second.members
    [shown] = (await typed("show", club, "--json")).objects
    assert [one["as"] for one in shown["members"]] == ["Alice, laptop", "Alice, laptop"]
    for arguments, why in (
        (("admit", club, "root"), "is a member already"),
        (("expel", club, key(3).hex()), "is no member"),
        (("admit", club, "abc"), "is no key: 64 hexadecimal digits"),
        (("new", club, network), "has a keeper's key already"),
        (("show", tmp_path), "is no keeper's directory"),
    ):
        refused = await typed(*arguments)
        assert refused.code == 2
        assert why in refused.error
    assert load(club).charter == second, "what is refused changes nothing"


async def test_only_networks_of_communities_have_them(tmp_path: Path, network: Path) -> None:
    network.write_text(OTHER)
    refused = await typed("new", tmp_path / "club", network)
    assert (refused.code, 'privacy = "clear", and no communities' in refused.error) == (2, True)
    node = tmp_path / "node.toml"
    node.write_text(f'program = "node"\nrole = "client"\nstate = "{tmp_path}/state"\n{OTHER}')
    refused = await typed("join", "ab" * 32, "--config", node)
    assert (refused.code, "its network has no communities" in refused.error) == (2, True)
    node.write_text(f'{node.read_text()}[brokers]\ncommunity = "{"ab" * 32}"\n')
    with pytest.raises(UsageError, match=r"brokers\.community"):
        load_settings(node, NodeSettings)


@pytest.mark.parametrize("own", ["", "[brokers]  # ours\n", f'[brokers]\nedge = "{"cd" * 32}"\n'])
async def test_a_daemon_names_its_community_and_has_a_key(tmp_path: Path, own: str) -> None:
    node, state = tmp_path / "node.toml", tmp_path / "state"
    node.write_text(f'# mine\nprogram = "node"\nrole = "client"\nstate = "{state}"\n{own}{WHOLE}')
    early = await typed("join", "ab" * 32, "--config", node)
    assert "start the daemon once" in early.error
    state.mkdir(mode=0o700)
    joined = await typed("join", "ab" * 32, "--config", node)
    assert joined.code == 0, joined.stderr
    settings = load_settings(node, NodeSettings)
    assert settings.brokers.community_key() == b"\xab" * 32
    assert (settings.brokers.edge is None) == ("edge" not in own)
    assert node.read_text().startswith("# mine\n")
    shown = Seed((state / "community.key").read_bytes()).public().hex()
    assert joined.stdout.decode().strip() == shown
    [again] = (await typed("join", "ab" * 32, "--config", node, "--json")).objects
    assert (again["key"], again["new"]) == (shown, False)
    refused = await typed("join", "cd" * 32, "--config", node)
    assert "names another community" in refused.error


async def test_what_cannot_be_sent_is_refused(tmp_path: Path, network: Path) -> None:
    club, node = tmp_path / "club", tmp_path / "node.toml"
    await typed("new", club, network)
    refused = await typed("send", club, "--config", node)
    assert "has no charter yet" in refused.error
    await typed("admit", club, "root")
    node.write_text(f'program = "node"\nrole = "client"\nstate = "{tmp_path}/state"\n{OTHER}')
    refused = await typed("send", club, "--config", node)
    assert (refused.code, "of another network" in refused.error) == (2, True)
