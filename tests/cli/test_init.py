"""`hushcast init` and `join`: from nothing to a configuration that a daemon takes, without an editor."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest
from running import STATES, environment, hushcast

from hushcast_brokers.broker.settings import BrokerSettings, RootSettings
from hushcast_brokers.tomography.settings import TomographySettings
from hushcast_central.settings import ProxySettings, ServerSettings
from hushcast_cli.configuration.first_config import NetworkFoundation, first_config
from hushcast_cli.configuration.places import places, service_places, user_places
from hushcast_cli.operate.join import with_network
from hushcast_directory.server.settings import DirectorySettings
from hushcast_gateway.settings import GatewaySettings
from hushcast_located.owner_service.settings import OwnerSettings
from hushcast_located.service.settings import ProviderSettings
from hushcast_node.settings import NodeSettings
from hushcast_protocol.base.addresses import onion_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.processes.config import AuthoritySection, NetworkSection, load_settings, parse_settings
from hushcast_runtime.processes.network_file import network_of_several, network_section

ROOT = Path(__file__).parents[2]
KEY = Seed(bytes(32)).public()


def network_text(name: str = "test") -> str:
    return network_section(NetworkSection(name=name), onion_address(KEY), KEY.hex())


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a user whose files lie under `tmp_path`, which has a network.toml."""
    (tmp_path / "network.toml").write_text(network_text())
    return environment(
        HOME=str(tmp_path),
        XDG_CONFIG_HOME=str(tmp_path / "config"),
        XDG_STATE_HOME=STATES,
        XDG_RUNTIME_DIR=str(tmp_path / "run"),
    )


@pytest.mark.parametrize("role", ["relay", "client"])
async def test_init_and_join_are_all_that_a_node_needs(
    tmp_path: Path, home: dict[str, str], role: str
) -> None:
    config = tmp_path / "config" / "hushcast" / "node.toml"
    made = await hushcast("init", role, env=home)
    assert (made.code, made.stderr) == (0, "")
    assert (
        made.stdout.decode() == f"{config}: the configuration of a {role}\nnext: hushcast join network.toml\n"
    )
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    unfinished = await hushcast("admin", "check-config", config, env=home)
    assert unfinished.code == 2
    assert "network: this is missing: `hushcast join network.toml` adds it" in unfinished.error
    joined = await hushcast("join", tmp_path / "network.toml", env=home)
    assert (joined.code, joined.stderr) == (0, "")
    assert joined.stdout.decode() == f"{config}: a {role} of the network test\nnext: hushcast run node\n"
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    settings = load_settings(config, NodeSettings)
    assert (settings.role, settings.network.name) == (role, "test")
    assert settings.state == f"{STATES}/hushcast"
    assert settings.socket == str(tmp_path / "run" / "hushcast" / "control.sock")
    again = await hushcast("join", "-", stdin=network_text().encode(), env=home)
    assert again.code == 0, "what is done already is no error"


async def test_several_directories_take_the_place_of_one_and_the_other_way(
    tmp_path: Path, home: dict[str, str]
) -> None:
    config = tmp_path / "config" / "hushcast" / "node.toml"
    await hushcast("init", "client", env=home)
    assert (await hushcast("join", tmp_path / "network.toml", env=home)).code == 0
    config.write_text(config.read_text() + "\n[coverage]\nprobes_an_epoch = 3\n")
    keys = [Seed(bytes([number]) * 32).public() for number in (1, 2, 3)]
    listed = [AuthoritySection(key=key.hex(), address=onion_address(key)) for key in keys]
    (tmp_path / "three.toml").write_text(network_of_several(NetworkSection(name="test"), listed, 2))
    refused = await hushcast("join", tmp_path / "three.toml", env=home)
    assert refused.code == 2
    assert "another address or key of this network's directories" in refused.error
    for file, count in (("three.toml", 3), ("network.toml", 1), ("three.toml", 3)):
        assert (await hushcast("join", tmp_path / file, "--force", env=home)).code == 0
        settings = load_settings(config, NodeSettings)
        assert len(settings.directories().members) == count
        assert settings.coverage.probes_an_epoch == 3
    nobody = (tmp_path / "three.toml").read_text().partition("[[")[0]
    told = await hushcast("join", "-", stdin=nobody.encode(), env=home)
    assert told.code == 2
    assert "network.quorum: it is of several directories" in told.error


async def test_a_client_may_be_given_a_socks_port_alone(home: dict[str, str]) -> None:
    made = await hushcast("init", "client", "--socks", "127.0.0.1:9150", "--output", "-", env=home)
    settings = parse_settings(made.stdout + network_text().encode(), "init", NodeSettings)
    assert (settings.tor.mode, settings.tor.socks) == ("socks", "127.0.0.1:9150")


async def test_init_is_all_that_a_directory_needs(tmp_path: Path, home: dict[str, str]) -> None:
    made = await hushcast("init", "directory", "--network", "mine", "--epoch", "20", "--json", env=home)
    config = tmp_path / "config" / "hushcast" / "directory.toml"
    assert made.stderr == ""
    assert made.objects == [{"file": str(config), "kind": "directory", "next": ["hushcast run directory"]}]
    settings = load_settings(config, DirectorySettings)
    assert (settings.network.name, settings.network.epoch_seconds) == ("mine", 20)


async def test_a_network_without_a_name_gets_one_of_its_own(tmp_path: Path, home: dict[str, str]) -> None:
    names = set()
    for _ in range(2):
        text = (await hushcast("init", "directory", "--output", "-", env=home)).stdout
        names.add(parse_settings(text, "init", DirectorySettings).network.name)
    assert len(names) == 2
    assert not (tmp_path / "config").exists()


async def test_another_file_names_itself_and_a_state_that_two_share_is_told(
    tmp_path: Path, home: dict[str, str]
) -> None:
    file = tmp_path / "mine.toml"
    alone = await hushcast("init", "relay", "--output", file, env=home)
    assert alone.stderr == ""
    assert f"#   hushcast admin check-config {file}\n" in file.read_text()
    await hushcast("init", "client", env=home)
    shared = await hushcast("init", "relay", "--output", tmp_path / "other.toml", env=home)
    assert shared.code == 0
    assert "hushcast/node.toml has the state directory" in shared.stderr
    assert "give this one a `state` of its own" in shared.stderr


async def test_nothing_is_replaced_unless_told(tmp_path: Path, home: dict[str, str]) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("precious")
    refused = await hushcast("init", "relay", "--output", file, env=home)
    assert (refused.code, file.read_text()) == (2, "precious")
    assert f"{file} is there already: --force replaces it" in refused.error
    assert (await hushcast("init", "relay", "--output", file, "--force", env=home)).code == 0
    joined = await hushcast("join", tmp_path / "network.toml", "--config", file, env=home)
    assert f"next: hushcast run --config {file}\n" in joined.stdout.decode()
    before = file.read_text()
    other = network_text("other").encode()
    refused = await hushcast("join", "-", "--config", file, stdin=other, env=home)
    assert (refused.code, file.read_text()) == (2, before)
    assert "is in another network: --force leaves it" in refused.error
    new_key = network_text().replace(KEY.hex(), "ab" * 32).encode()
    refused = await hushcast("join", "-", "--config", file, stdin=new_key, env=home)
    assert (refused.code, file.read_text()) == (2, before)
    assert "another address or key of this network's directory" in refused.error
    moved = await hushcast("join", "-", "--config", file, "--force", stdin=new_key, env=home)
    assert (moved.code, moved.stderr) == (0, ""), "the state stays the same network's"
    moved = await hushcast("join", "-", "--config", file, "--force", stdin=other, env=home)
    assert moved.code == 0
    assert "empty it, or name another" in moved.stderr
    assert load_settings(file, NodeSettings).network.name == "other"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (network_text().replace("name", "nmae"), "network.nmae: there is no such key: did you mean name?"),
        (network_text().replace(KEY.hex(), "ab"), "network.directory_key"),
        (network_text().replace(onion_address(KEY), "127.0.0.1:7411"), "it must be an onion address"),
        (network_text().replace(onion_address(KEY), "192.0.2.1:7411"), "neither an onion"),
        ('role = "relay"\n' + network_text(), "role: there is no such key"),
        ("[network]\n", "this is missing"),
        ("", "network: this is missing"),
        ("\x00", "is not TOML"),
        ("#" * 70_000, "at most 65536 bytes"),
    ],
)
async def test_what_is_no_network_is_refused_by_its_key(
    tmp_path: Path, home: dict[str, str], text: str, told: str
) -> None:
    file = tmp_path / "node.toml"
    await hushcast("init", "client", "--output", file, env=home)
    before = file.read_text()
    outcome = await hushcast("join", "-", "--config", file, stdin=text.encode(), env=home)
    assert outcome.code == 2
    assert told in outcome.error
    assert file.read_text() == before


async def test_loopback_is_a_directory_only_where_the_configuration_says_tcp(
    tmp_path: Path, home: dict[str, str]
) -> None:
    file = tmp_path / "node.toml"
    file.write_text(f'program = "node"\nrole = "client"\nstate = "{tmp_path}/state"\ntransport = "tcp"\n')
    text = network_text().replace(onion_address(KEY), "127.0.0.1:7411").encode()
    assert (await hushcast("join", "-", "--config", file, stdin=text, env=home)).code == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["init", "rely"], "did you mean relay?"),
        (["init", "relay", "--network", "x"], "are a directory's"),
        (["init", "relay", "--socks", "127.0.0.1:9150"], "which take tor's control port"),
        (["init", "client", "--socks", "192.0.2.1:9150"], "--socks: an endpoint of tor is neither loopback"),
        (["init", "client", "--socks", "127.0.0.1:9150", "--tor-sockets", "x"], "exclude each other"),
        (["init", "directory", "--name", "x"], "a machine has one directory"),
        (["init", "relay", "--name", "../x"], "cannot be used"),
        (["init", "relay", "--name", "node"], "cannot be used"),
        (["join", "network.toml"], "cannot be read"),
        (["join", "-", "--name", "a", "--config", "b"], "not both"),
        (["run", "node"], "`hushcast init relay` makes one"),
        (["run", "directory"], "`hushcast init directory` makes one"),
    ],
)
async def test_wrong_usage(tmp_path: Path, home: dict[str, str], arguments: list[str], told: str) -> None:
    outcome = await hushcast(*arguments, env=home | {"XDG_CONFIG_HOME": str(tmp_path / "none")})
    assert outcome.code == 2
    assert told in outcome.error


async def test_without_a_configuration_join_says_what_makes_one(tmp_path: Path, home: dict[str, str]) -> None:
    outcome = await hushcast("join", tmp_path / "network.toml", env=home)
    assert outcome.code == 2
    assert "`hushcast init relay` or `hushcast init client` makes one" in outcome.error


async def test_a_directory_joins_nothing(tmp_path: Path, home: dict[str, str]) -> None:
    file = tmp_path / "directory.toml"
    await hushcast("init", "directory", "--output", file, env=home)
    outcome = await hushcast("join", tmp_path / "network.toml", "--config", file, env=home)
    assert outcome.code == 2
    assert "only relays and clients" in outcome.error


async def test_what_is_no_section_makes_no_traceback(tmp_path: Path, home: dict[str, str]) -> None:
    file, network = tmp_path / "node.toml", tmp_path / "network.toml"
    file.write_text('program = "directory"\nnetwork = "somewhere"\n')
    network.write_text(network_text())
    outcome = await hushcast("join", network, "--config", file, env=home)
    assert outcome.code == 2
    assert "only relays and clients" in outcome.error


def test_services_have_the_places_of_their_units() -> None:
    for unit, found in {
        "hushcast-node.service": service_places("node"),
        "hushcast-node@.service": service_places("node", "%i"),
        "hushcast-directory.service": service_places("directory"),
        "hushcast-central-server.service": service_places("central-server"),
        "hushcast-central-proxy.service": service_places("deliveries-proxy"),
        "hushcast-broker.service": service_places("broker"),
        "hushcast-tomography.service": service_places("tomography"),
        "hushcast-located.service": service_places("located-provider"),
        "hushcast-located-owner.service": service_places("located-owner"),
    }.items():
        text = (ROOT / "systemd" / unit).read_text()
        assert f"--config {found.config}\n" in text
        assert f"StateDirectory={found.state.name}\n" in text
        assert found.state.parent == Path("/var/lib")
        if found.socket is not None:
            assert f"RuntimeDirectory={found.socket.parent.name}\n" in text
        assert found.unit is not None
        assert unit == f"{found.unit.replace('%i', '')}.service"


def test_root_has_the_services_places_where_the_package_made_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert places("node", etc=tmp_path).unit is None
    (tmp_path / "hushcast").mkdir()
    assert places("node", etc=tmp_path).unit == "hushcast-node"
    assert places("node", "b", tmp_path).config == tmp_path / "hushcast" / "b.toml"
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert places("node", etc=tmp_path).unit is None


def test_two_daemons_share_no_place() -> None:
    found = [user_places("node", None, {}), user_places("node", "b", {}), user_places("directory", None, {})]
    found += [service_places("node"), service_places("node", "b"), service_places("directory")]
    found += [service_places("central-server"), service_places("deliveries-proxy"), service_places("broker")]
    found += [service_places(kind) for kind in ("tomography", "located-provider", "located-owner")]
    kinds = ["central-server", "publications-proxy", "deliveries-proxy", "broker-root", "broker"]
    found += [
        user_places(kind, None, {}) for kind in (*kinds, "tomography", "located-provider", "located-owner")
    ]
    assert len({each.state for each in found}) == len({each.config for each in found}) == len(found)


def test_a_tor_beside_is_reached_by_sockets_alone() -> None:
    text = first_config("relay", user_places("node", None, {"HOME": "/h"}), Path("/run/tor-beside"), None)
    settings = parse_settings((text + network_text()).encode(), "init", NodeSettings)
    found = settings.tor.settings(Path(settings.state))
    assert str(found.control) == "unix:/run/tor-beside/control"
    assert str(found.socks) == "unix:/run/tor-beside/socks"
    assert found.services == Path("/run/tor-beside")


@pytest.mark.parametrize("name", ["😀 ⟨…⟩", 'quo"te\\', "line\nfeed\x7f\x01"])
def test_any_name_comes_through(name: str) -> None:
    text = first_config("directory", service_places("directory"), None, NetworkFoundation(name, 60))
    assert parse_settings(text.encode(), "init", DirectorySettings).network.name == name
    node = first_config("relay", service_places("node"), None, None) + network_text(name)
    assert parse_settings(node.encode(), "init", NodeSettings).network.name == name


def test_all_but_the_network_stays_as_it_was() -> None:
    top, rest = '# mine\nrole = "relay"\nstate = "/s"\n\n', '[log]\nlevel = "debug" # keep\n'
    old, new = network_text("old"), network_text("new")
    assert with_network(top + rest, new, "f") == top + rest + "\n" + new
    assert with_network(top + old + rest, new, "f") == top + new + "\n" + rest
    assert with_network(top + rest + old, new, "f") == top + rest + new


@pytest.mark.parametrize(
    "text", ['network = { name = "x" }\n', 'network.name = "x"\n', '[log]\na = """\n[network]\n"""\n']
)
def test_what_cannot_be_edited_is_left_to_people(text: str) -> None:
    with pytest.raises(UsageError, match="by hand"):
        with_network(text, network_text(), "f")


def test_the_examples_are_what_init_makes() -> None:
    sys.path.append(str(ROOT / "tools"))
    from example_files import FOLDER, examples  # type: ignore[import-not-found]

    assert {file.name: file.read_text() for file in FOLDER.iterdir()} == examples(), (
        "run tools/example_files.py"
    )
    others = {
        "directory.toml": DirectorySettings,
        "gateway.toml": GatewaySettings,
        "central-server.toml": ServerSettings,
        "central-proxy.toml": ProxySettings,
        "broker-root.toml": RootSettings,
        "broker.toml": BrokerSettings,
        "tomography.toml": TomographySettings,
        "located-provider.toml": ProviderSettings,
        "located-owner.toml": OwnerSettings,
    }
    for name, text in examples().items():
        if name != "network.toml":
            kind = others.get(name, NodeSettings)
            parse_settings(text.encode(), name, kind)  # type: ignore[type-var]


async def test_a_root_is_made_with_what_its_brokers_learn(tmp_path: Path, home: dict[str, str]) -> None:
    file = tmp_path / "root.toml"
    made = await hushcast("init", "broker-root", "--privacy", "full", "--output", file, env=home)
    assert (made.code, made.stderr) == (0, "")
    root = load_settings(file, RootSettings)
    assert root.network.settled().text == "full/3/apart"  # it takes three brokers, not one
    refused = await hushcast("init", "broker-root", "--layers", "2", "--output", "-", env=home)
    assert (refused.code, refused.error) == (2, "--layers is for --privacy full")
