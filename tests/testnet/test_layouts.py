"""Which daemons a testnet of each carrier has; descriptions of before, which know of one carrier alone."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from hushcast_directory.server.settings import DirectorySettings
from hushcast_protocol.base.cover_terms import CoverTerms
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.keeping_rule import KeepingRule
from hushcast_protocol.central.network import MAX_PROXIES
from hushcast_runtime.processes.config import NetworkSection, parse_settings
from hushcast_runtime.processes.network_file import network_section
from hushcast_testnet import testnet
from hushcast_testnet.inventory import CarrierName, Member, load, run_by
from hushcast_testnet.layouts import CentralLayout, OverlayLayout, Profile, layout_of, proxy_names

HERE = Path("/t")


def test_nodes_of_the_overlay_are_relays_and_clients() -> None:
    members = OverlayLayout(2, 1).members(HERE)
    assert [(one.name, one.role) for one in members] == [
        ("directory", "directory"),
        ("relay-1", "relay"),
        ("relay-2", "relay"),
        ("client-1", "client"),
    ]
    assert [one.home for one in members[:2]] == [HERE / "directory", HERE / "nodes" / "relay-1"]
    assert [one.is_node for one in members] == [False, True, True, True]
    assert [one.socket for one in members[:2]] == [None, "/t/nodes/relay-1/control.sock"]


def test_nodes_of_the_central_system_are_clients_of_a_server_and_proxies() -> None:
    members = CentralLayout(2, 3).members(HERE)
    assert [(one.name, one.role) for one in members] == [
        ("server", "server"),
        ("publications-1", "proxy"),
        ("deliveries-1", "proxy"),
        ("publications-2", "proxy"),
        ("client-1", "client"),
        ("client-2", "client"),
    ]
    assert members[1].home == HERE / "proxies" / "publications-1"
    assert [one.is_node for one in members] == [False] * 4 + [True] * 2
    assert [run_by(one.role) for one in members[:2]] == [
        ("hushcast_central", "server"),
        ("hushcast_central", "proxy"),
    ]
    assert dict(proxy_names(2)) == {"publications-1": "publications", "deliveries-1": "deliveries"}


def test_brokers_may_have_a_tomography_service() -> None:
    with_service = layout_of("brokers", 2, None, None, 1, with_tomography=True)
    members = with_service.members(HERE)
    assert [one.name for one in members] == [
        *("root", "inner-1", "inner-2", "edge-1"),
        *("tomography", "client-1", "client-2"),
    ]
    assert run_by(members[4].role) == ("hushcast_brokers.tomography",)
    assert "tomography" not in [one.name for one in layout_of("brokers", 2, None, None, 1).members(HERE)]
    with pytest.raises(UsageError, match="--carrier brokers"):
        layout_of("central", 2, None, None, with_tomography=True)


def test_numbers_that_are_not_given_are_the_usual_ones() -> None:
    assert layout_of("overlay", None, None, None) == OverlayLayout(10, 2)
    assert layout_of("overlay", 3, 0, None) == OverlayLayout(3, 0)
    assert layout_of("overlay", 3, 0, None, directories=5) == OverlayLayout(3, 0, directories=5)
    cut = layout_of("overlay", 9, 0, None, directories=3, shard_size=4)
    assert cut == OverlayLayout(9, 0, directories=3, shard_size=4)
    for directories in (None, 1):
        with pytest.raises(UsageError, match="--authorities 2 or more"):
            layout_of("overlay", 9, 0, None, directories=directories, shard_size=4)
        with pytest.raises(UsageError, match="--authorities 2 or more"):
            layout_of("overlay", 9, 0, None, directories=directories, keepers=3)
        with pytest.raises(UsageError, match="--authorities 2 or more"):
            layout_of("overlay", 12, 0, None, directories=directories, cover=True)
    with pytest.raises(UsageError, match="--nodes 12 or more"):
        layout_of("overlay", 11, 0, None, directories=3, cover=True)
    assert layout_of("central", None, None, None) == CentralLayout(6, 2)
    assert layout_of("central", 4, None, 5) == CentralLayout(4, 5)


def test_several_directories_stand_beside_each_other() -> None:
    members = OverlayLayout(1, 0, directories=3).members(HERE)
    assert [member.name for member in members] == ["directory-1", "directory-2", "directory-3", "relay-1"]
    assert len({member.state for member in members}) == 4
    with pytest.raises(UsageError, match="--authorities"):
        layout_of("central", None, None, None, directories=3)


async def test_directories_are_told_of_each_other_and_nodes_of_all() -> None:
    layout, builder = OverlayLayout(2, 1, directories=3, shard_size=7, keepers=3, cover=True), Telling()
    await layout.start(builder, layout.members(HERE))  # type: ignore[arg-type]
    assert builder.started == ["directory-1", "directory-2", "directory-3"]
    assert set(builder.restarted) == set(builder.started)
    for name, text in builder.restarted.items():
        whole = f'state = "/x"\ntransport = "tcp"\n{text}'
        settings = parse_settings(whole.encode(), name, DirectorySettings)
        sitting = settings.sitting(Telling.key_of(name))
        assert sitting is not None
        assert len(sitting.authorities.members) == 3
        assert sitting.authorities.shard_size == 7
        assert sitting.authorities.keeping == KeepingRule(3)
        assert sitting.authorities.cover == CoverTerms(20, 4, 0)
        assert sitting.authorities.quorum == 2
    assert builder.nodes == dict.fromkeys(("relay-1", "relay-2", "client-1"), "network.authorities")


class Telling:
    """Stands for a builder, and writes what directories would."""

    testnet = SimpleNamespace(epoch=30)

    def __init__(self) -> None:
        self.started: list[str] = []
        self.restarted: dict[str, str] = {}
        self.nodes: dict[str, str] = {}

    @staticmethod
    def key_of(name: str) -> bytes:
        return name.encode().rjust(32, b"-")

    def progress(self, text: str) -> None:
        pass

    async def start(self, member: Member, keys: list[str], sections: list[str]) -> None:
        self.started.append(member.name)

    async def restart(self, member: Member, keys: list[str], sections: list[str]) -> None:
        self.restarted[member.name] = "\n".join([*keys, *sections])

    async def start_node(self, member: Member, network: str) -> None:
        self.nodes[member.name] = network

    async def written(self, member: Member, name: str, holding: Collection[str] = ()) -> str:
        if holding:
            return "".join(holding)
        number = self.started.index(member.name)
        key = self.key_of(member.name).hex()
        return network_section(NetworkSection(name="testnet"), f"127.0.0.1:{700 + number}", key)


class Writing:
    """Stands for a builder until it would start the first daemon, and shows what that is configured with."""

    class Started(Exception):
        pass

    testnet = SimpleNamespace(epoch=30)

    def progress(self, text: str) -> None:
        pass

    def traced(self, member: Member) -> list[str]:
        return []

    async def start(self, member: Member, keys: list[str], sections: list[str]) -> None:
        raise self.Started(sections)


@pytest.mark.parametrize("carrier", ["overlay", "central"])
@pytest.mark.parametrize(
    ("given", "profile"), [(None, "hardened"), ("hardened", "hardened"), ("paper", "paper")]
)
async def test_a_network_is_made_with_its_profile(
    carrier: CarrierName, given: Profile | None, profile: Profile
) -> None:
    layout, builder = layout_of(carrier, 2, None, None, profile=given), Writing()
    with pytest.raises(Writing.Started) as raised:
        await layout.start(builder, layout.members(HERE))
    assert f'profile = "{profile}"' in raised.value.args[0]


async def test_brokers_are_made_with_their_privacy() -> None:
    layout, builder = (
        layout_of("brokers", 2, None, None, profile="paper", privacy="full", layers=2),
        Writing(),
    )
    with pytest.raises(Writing.Started) as raised:
        await layout.start(builder, layout.members(HERE))
    assert 'privacy = "full"\nlayers = 2\nprofile = "paper"\naggregation = true\n' in raised.value.args[0]
    layout = layout_of("brokers", 2, None, None, privacy="full", aggregation=True)
    with pytest.raises(Writing.Started) as raised:
        await layout.start(builder, layout.members(HERE))
    assert 'privacy = "full"\nlayers = 3\naggregation = true\n' in raised.value.args[0]
    with pytest.raises(UsageError, match="leave --aggregation away"):
        layout_of("brokers", 2, None, None, aggregation=True)
    layout = layout_of("brokers", 2, None, None, privacy="community")
    with pytest.raises(Writing.Started) as raised:
        await layout.start(builder, layout.members(HERE))
    assert 'privacy = "community"\n' in raised.value.args[0]
    with pytest.raises(UsageError, match="--carrier brokers"):
        layout_of("overlay", 2, None, None, privacy="full")
    with pytest.raises(UsageError, match="leave --layers away"):
        layout_of("brokers", 2, None, None, layers=2)


def test_brokers_have_no_profile_but_under_full() -> None:
    with pytest.raises(UsageError, match="leave --profile away"):
        layout_of("brokers", None, None, None, profile="paper")


@pytest.mark.parametrize(
    ("carrier", "clients", "proxies", "said"),
    [
        ("overlay", None, 2, "--carrier central"),
        ("central", 1, None, "--nodes"),
        ("central", None, 1, "one of each role"),
        ("central", None, MAX_PROXIES + 1, str(MAX_PROXIES)),
    ],
)
def test_numbers_of_the_other_carrier_are_refused(
    carrier: str, clients: int | None, proxies: int | None, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        layout_of(carrier, 3, clients, proxies)


def test_a_description_of_before_is_one_of_an_overlay(tmp_path: Path) -> None:
    member = {"name": "relay-1", "role": "relay", "config": "c", "state": str(tmp_path), "socket": "s"}
    described = {"transport": "tcp", "epoch": 30, "began": 0.0, "members": [member], "tor": None}
    (tmp_path / "testnet.json").write_text(json.dumps(described))
    assert load(tmp_path).carrier == "overlay"
    status = testnet.status_of(tmp_path, {})
    assert list(status) == ["ready", "transport", "distance", "epoch", "nodes", "gateways", "directory"]


def test_the_status_of_a_central_testnet_names_server_and_proxies(tmp_path: Path) -> None:
    members = CentralLayout(1, 2).members(tmp_path)
    for name, text in (
        ("server/state/network.toml", '[network]\nserver = "a:1"\n'),
        ("proxies/publications-1/state/proxy.toml", '[[proxies]]\nrole = "publications"\naddress = "b:1"\n'),
    ):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    described = testnet.Testnet("tcp", 30, 0.0, members, None, carrier="central")
    (tmp_path / "testnet.json").write_bytes(msgspec.json.encode(described))
    status = testnet.status_of(tmp_path, {"client-1": {"ready": True}})
    assert (status["ready"], status["carrier"], "directory" in status) == (False, "central", False)
    assert (status["server"]["address"], status["server"]["pid"]) == ("a:1", None)
    assert [(one["name"], one["address"]) for one in status["proxies"]] == [
        ("publications-1", "b:1"),
        ("deliveries-1", None),
    ]
    assert [one["name"] for one in status["nodes"]] == ["client-1"]
