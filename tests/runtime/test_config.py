"""Configuration: every setting says what it is, and whatever could leak or cannot work is refused by name."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import msgspec
import pytest

from hushcast_brokers.network_file import BrokersNetworkSection
from hushcast_central import network_file as central_network_file
from hushcast_central import settings as central_settings
from hushcast_central.network_file import CentralNetworkSection
from hushcast_directory.client.pinned_directories import PinnedDirectories
from hushcast_directory.server import settings as directory_settings
from hushcast_directory.server.settings import DirectorySettings
from hushcast_local import settings as local_settings
from hushcast_node import settings as node_settings
from hushcast_node.settings import NodeSettings
from hushcast_protocol.base.addresses import Address, onion_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.roster import Network
from hushcast_protocol.overlay.profile import HARDENED, PAPER
from hushcast_runtime.processes import config, testnet_section
from hushcast_runtime.processes.config import MAX_CONFIG, NetworkSection, load_settings, parse_toml
from hushcast_runtime.processes.network_file import network_of_several

ONION = onion_address(Seed(bytes(32)).public())
DECLARING = [
    config,
    testnet_section,
    local_settings,
    central_network_file,
    central_settings,
    directory_settings,
    node_settings,
]
DOCS = Path(__file__).parents[2] / "docs" / "configuration.md"

NODE = f"""
role = "relay"
state = "/var/lib/hushcast"
[network]
name = "n"
directory = "{ONION}"
directory_key = "{"ab" * 32}"
"""


def several(count: int, quorum: int) -> str:
    """What a section says of several directories."""
    keys = (f"{number:02}" * 32 for number in range(1, count + 1))
    listed = (f'[[network.authorities]]\nkey = "{key}"\naddress = "{ONION}"\n' for key in keys)
    return f"quorum = {quorum}\n" + "".join(listed)


def of_several(count: int, quorum: int) -> str:
    return "".join(line for line in NODE.splitlines(True) if "directory" not in line) + several(count, quorum)


SEVERAL = of_several(3, 2)
DIRECTORY = """
state = "/var/lib/hushcast"
[network]
name = "n"
"""


def load_node(directory: Path, text: str) -> NodeSettings:
    path = directory / "node.toml"
    path.write_text(text)
    return load_settings(path, NodeSettings)


def load_directory(directory: Path, text: str) -> DirectorySettings:
    path = directory / "directory.toml"
    path.write_text(text)
    return load_settings(path, DirectorySettings)


def with_lines(text: str, *lines: str) -> str:
    """The text with lines put before its first section."""
    head, _, rest = text.partition("[network]")
    return head + "\n".join(lines) + "\n[network]" + rest


# Documentation


def sections() -> list[type]:
    return [
        kind
        for module in DECLARING
        for kind in vars(module).values()
        if inspect.isclass(kind) and issubclass(kind, msgspec.Struct) and kind.__module__ == module.__name__
    ]


def undocumented() -> list[str]:
    """Settings without a docstring of their own, by reading the source."""
    found = []
    for node in [node for module in DECLARING for node in ast.parse(inspect.getsource(module)).body]:
        if not isinstance(node, ast.ClassDef):
            continue
        for position, statement in enumerate(node.body):
            if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
                continue
            after = node.body[position + 1] if position + 1 < len(node.body) else None
            documented = (
                isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
                and isinstance(after.value.value, str)
            )
            kind = ast.unparse(statement.annotation)
            # A section has its docstring at its class, a daemon's network says which daemons it is for.
            if not documented and not kind.removesuffix(" | None").endswith("Section"):
                found.append(f"{node.name}.{statement.target.id}")
    return found


def test_every_setting_says_what_it_is() -> None:
    assert undocumented() == []
    assert all(kind.__doc__ for kind in sections() if not kind.__name__.startswith("_"))


def names(kind: type, prefix: str = "") -> list[str]:
    """Every setting of a daemon, with its sections before it."""
    found = []
    for field in msgspec.structs.fields(kind):
        inner = next((part for part in sections() if part is field.type or part in args(field.type)), None)
        found += names(inner, f"{prefix}{field.encode_name}.") if inner else [f"{prefix}{field.encode_name}"]
    return found


def args(kind: object) -> tuple[object, ...]:
    return getattr(kind, "__args__", ())


@pytest.mark.skipif(not DOCS.exists(), reason="docs/configuration.md is not written yet")
@pytest.mark.parametrize("setting", sorted({*names(NodeSettings), *names(DirectorySettings)}))
def test_every_setting_is_in_the_documentation(setting: str) -> None:
    assert f"`{setting.split('.')[-1]}`" in DOCS.read_text() or f"`{setting}`" in DOCS.read_text()


# What is right


def test_little_has_to_be_said(tmp_path: Path) -> None:
    node = load_node(tmp_path, NODE)
    assert (node.transport, node.tor.mode, node.log.level, node.testnet) == ("tor", "own", "info", None)
    assert node.socket_path() == Path("/var/lib/hushcast/control.sock")
    assert node.network.network() == Network("n", "hardened", 3600)
    assert node.profile() == HARDENED
    assert load_directory(tmp_path, DIRECTORY).first_roster == 1


def test_everything_can_be_said(tmp_path: Path) -> None:
    text = with_lines(NODE, "depth = 4", "origins = 8", 'socket = "/run/hushcast.sock"')
    text += (
        'profile = "paper"\nepoch_seconds = 20\n[tor]\nmode = "system"\ncontrol = "unix:/run/tor/control"\n'
    )
    text += 'socks = "127.0.0.1:9150"\n[log]\nlevel = "debug"\njson = true\n'
    text += TESTNET + 'clock = "/tmp/clock"\n'
    node = load_node(tmp_path, text)
    assert (node.profile().name, node.profile().depth, node.profile().origins) == (PAPER.name, 4, 8)
    assert node.socket_path() == Path("/run/hushcast.sock")
    assert node.tor.settings(Path("/x")).control is not None
    assert node.testnet is not None


def test_loopback_is_for_tcp(tmp_path: Path) -> None:
    tcp = with_lines(NODE.replace(ONION, "127.0.0.1:700"), 'transport = "tcp"')
    assert load_node(tmp_path, tcp).transport == "tcp"


def test_a_client_may_have_a_socks_port_alone(tmp_path: Path) -> None:
    socks_alone = CLIENT + '[tor]\nmode = "socks"\nsocks = "127.0.0.1:9150"\n'
    tor = load_node(tmp_path, socks_alone).tor.settings(Path("/x"))
    assert (str(tor.socks), tor.control, tor.has_control) == ("127.0.0.1:9150", None, False)


# What is wrong: each refusal names the file, the key, and the reason

TCP = with_lines(NODE.replace(ONION, "127.0.0.1:700"), 'transport = "tcp"')
TESTNET = '[testnet]\nname = "n"\ntraces = "/tmp/traces"\nbegan = 1.5\n'
CLIENT = NODE.replace("relay", "client")
SYSTEM = NODE + '[tor]\nmode = "system"\n'
WRONG = {
    "unknown key": (with_lines(NODE, "colour = 1"), ["colour"]),
    "unknown key of a section": (NODE + "colour = 1\n", ["network", "colour"]),
    "unknown section": (NODE + "[extra]\na = 1\n", ["extra"]),
    "missing key": (NODE.replace('name = "n"', ""), ["network", "name"]),
    "missing section": (NODE.partition("[network]")[0], ["network"]),
    "no role": (NODE.replace('role = "relay"', ""), ["role"]),
    "wrong type": (
        with_lines(NODE, 'depth = "two"'),
        ["depth", "a whole number, not a text"],
    ),
    "wrong type of a section": (
        NODE + 'epoch_seconds = "1h"\n',
        ["network.epoch_seconds", "a whole number, not a text"],
    ),
    "a float for an int": (NODE + "epoch_seconds = 3600.5\n", ["network.epoch_seconds"]),
    "a number for a text": (NODE.replace('name = "n"', "name = 1"), ["network.name"]),
    "unknown role": (NODE.replace('"relay"', '"king"'), ["role", "king"]),
    "unknown transport": (with_lines(NODE, 'transport = "udp"'), ["transport", "udp"]),
    "memory transport": (with_lines(NODE, 'transport = "memory"'), ["transport"]),
    "unknown profile": (NODE + 'profile = "fast"\n', ["network.profile", "fast"]),
    "epoch too short": (NODE + "epoch_seconds = 1\n", ["network.epoch_seconds", "5"]),
    "epoch too long": (NODE + "epoch_seconds = 1000000\n", ["network.epoch_seconds", "86400"]),
    "depth 0": (with_lines(NODE, "depth = 0"), ["depth", "1"]),
    "depth 7": (with_lines(NODE, "depth = 7"), ["depth", "6"]),
    "unknown root": (with_lines(NODE, 'root = "mailbox"'), ["root", "there is no such key"]),
    "origins 9": (with_lines(NODE, "origins = 9"), ["origins", "8"]),
    "empty name": (NODE.replace('name = "n"', 'name = ""'), ["network.name", "1"]),
    "short key": (NODE.replace("ab" * 32, "ab" * 31), ["network.directory_key"]),
    "key in capitals": (NODE.replace("ab" * 32, "AB" * 32), ["network.directory_key"]),
    "key with a line end": (NODE.replace("ab" * 32, "ab" * 32 + "\\n"), ["network.directory_key"]),
    "no directory": (NODE.replace("directory =", "#"), ["network.directory", "join"]),
    "no key of the directory": (NODE.replace("directory_key", "# "), ["network.directory_key", "join"]),
    "a quorum of one directory": (NODE + "quorum = 1\n", ["network.quorum", "authorities"]),
    "one directory beside several": (NODE + several(3, 2), ["network.directory", "take"]),
    "several without a quorum": (SEVERAL.replace("quorum = 2", ""), ["network.quorum", "half"]),
    "a quorum that is no majority": (SEVERAL.replace("quorum = 2", "quorum = 1"), ["network.quorum", "half"]),
    "a quorum of more than all": (SEVERAL.replace("quorum = 2", "quorum = 4"), ["network.quorum"]),
    "ten directories": (of_several(10, 6), ["network.authorities", "9"]),
    "two with one key": (SEVERAL.replace("01" * 32, "02" * 32), ["network.authorities", "same key"]),
    "one that is no onion": (SEVERAL.replace(ONION, "127.0.0.1:7", 1), ["network.authorities #1", "onion"]),
    "no onion under tor": (NODE.replace(ONION, "127.0.0.1:700"), ["network.directory", "onion"]),
    "host name under tor": (NODE.replace(ONION, "example.org:80"), ["network.directory"]),
    "mistyped onion": (NODE.replace(ONION, "a" + ONION[1:]), ["network.directory", "checksum"]),
    "memory under tor": (NODE.replace(ONION, "ab" * 16 + ".memory:1"), ["network.directory", "onion"]),
    "clear net under tcp": (TCP.replace("127.0.0.1:700", "8.8.8.8:53"), ["network.directory"]),
    "onion under tcp": (TCP.replace("127.0.0.1:700", ONION), ["network.directory", "loopback"]),
    "memory under tcp": (TCP.replace("127.0.0.1:700", "ab" * 16 + ".memory:1"), ["network.directory"]),
    "a host under tor": (NODE + TESTNET + 'host = "127.0.0.2"\n', ["testnet", "tcp"]),
    "a path under tor": (NODE + TESTNET + 'path = "127.0.0.1:1"\n', ["testnet", "tcp"]),
    "a host elsewhere": (TCP + TESTNET + 'host = "192.0.2.1"\n', ["testnet", "loopback"]),
    "a path elsewhere": (TCP + TESTNET + 'path = "192.0.2.1:1"\n', ["testnet", "loopback"]),
    "services of a tor of our own": (NODE + '[tor]\nservices = "/run/doors"\n', ["tor", "services"]),
    "services too deep": (SYSTEM + f'services = "/{"d" * 85}"\n', ["tor", "services", "85"]),
    "control elsewhere": (SYSTEM + 'control = "10.0.0.1:9051"\n', ["tor", "loopback"]),
    "socks elsewhere": (SYSTEM + 'socks = "192.168.1.1:9050"\n', ["tor", "loopback"]),
    "socks by name": (SYSTEM + 'socks = "localhost:9050"\n', ["tor"]),
    "control without a port": (SYSTEM + 'control = "127.0.0.1"\n', ["tor", "127.0.0.1:PORT"]),
    "a relay by a SOCKS port alone": (NODE + '[tor]\nmode = "socks"\n', ["tor.mode", "onion service", "own"]),
    "a control port of a SOCKS port alone": (
        CLIENT + '[tor]\nmode = "socks"\ncontrol = "unix:/run/tor/control"\n',
        ["tor", "control", "take"],
    ),
    "services by a SOCKS port alone": (
        CLIENT + '[tor]\nmode = "socks"\nservices = "/run/doors"\n',
        ["tor", "services", "take"],
    ),
    "a SOCKS port alone elsewhere": (
        CLIENT + '[tor]\nmode = "socks"\nsocks = "10.152.152.10:9050"\n',
        ["tor", "loopback"],
    ),
    "a relay under cover": (NODE + "[cover]\non = true\n", ["cover.on", 'role = "client"']),
    "cover under paper": (CLIENT + 'profile = "paper"\n[cover]\non = true\n', ["cover.on", "paper"]),
    "connections ready under cover": (
        CLIENT + "[cover]\non = true\n[ready]\nconnections = 3\n",
        ["ready.connections", "under cover", "take"],
    ),
    "another hold": (CLIENT + '[cover]\nhold = "sometimes"\n', ["cover.hold"]),
    "torrc of the system's tor": (SYSTEM + 'torrc = "/etc/tor/torrc"\n', ["tor", "torrc"]),
    "relative state": (NODE.replace("/var/lib/hushcast", "state"), ["state", "absolute"]),
    "state under the home sign": (NODE.replace("/var/lib/hushcast", "~/hushcast"), ["state", "absolute"]),
    "long socket": (with_lines(NODE, f'socket = "/{"x" * 107}"'), ["socket", "107"]),
    "long state": (NODE.replace("/var/lib/hushcast", "/" + "x" * 100), ["socket", "107"]),
    "not TOML": ("role = relay", ["not TOML"]),
    "not text": ("\x00\x01", ["not TOML"]),
    "too large": ("#" * (MAX_CONFIG + 1), [str(MAX_CONFIG)]),
    "a number of thousands of digits": (with_lines(NODE, "depth = " + "9" * 5000), ["TOML", "digits"]),
    "a state that no path can be": (NODE.replace("/var/lib", "/var\\u0000"), ["state"]),
    "a socket that no path can be": (with_lines(NODE, 'socket = "/a\\u0000"'), ["socket"]),
    "a control socket of two lines": (SYSTEM + 'control = "unix:/a\\nb"\n', ["tor", "control characters"]),
    "nested deeply": ("a = " + "[" * 5000, ["TOML"]),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_cannot_be_used_is_named_with_the_reason(tmp_path: Path, wrong: str) -> None:
    text, said = WRONG[wrong]
    with pytest.raises(UsageError) as refused:
        load_node(tmp_path, text)
    message = str(refused.value)
    assert message.startswith(str(tmp_path / "node.toml"))
    assert "\n" not in message
    for word in said:
        assert word in message.removeprefix(str(tmp_path))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("first_roster = 0", "first_roster"),
        ("first_roster = 2001", "first_roster"),
        ('role = "relay"', "role"),
        ('socket = "/x"', "socket"),
    ],
)
def test_a_directory_has_settings_of_its_own(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        load_directory(tmp_path, with_lines(DIRECTORY, line))
    with pytest.raises(UsageError, match="state"):
        load_directory(tmp_path, DIRECTORY.replace("/var", "var"))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.toml", tmp_path):
        with pytest.raises(UsageError, match=f"{path} cannot be read"):
            load_settings(path, NodeSettings)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"# a\nrole = \xff", "line 2 is no UTF-8, which has no byte 0xff there"),
        (b'\xef\xbb\xbfrole = "relay"', "it begins with a byte order mark"),
        ('role = "relay"'.encode("utf-16"), "it is text in UTF-16"),
    ],
)
def test_text_that_is_no_utf8_is_not_toml(data: bytes, told: str, tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    path.write_bytes(data)
    with pytest.raises(UsageError, match=f"not TOML: {told}"):
        load_settings(path, NodeSettings)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (
            NODE.replace("directory_key", "directory_kee"),
            "network.directory_kee: there is no such key: did you mean",
        ),
        (NODE.replace("role", "rle"), "rle: there is no such key: did you mean role?"),
        (NODE + 'socket = "/run/x"\n', "network.socket: there is no such key; `socket` belongs to the top"),
        (
            "epoch_seconds = 5\n" + NODE,
            "epoch_seconds: there is no such key; `epoch_seconds` belongs into",
        ),
        (NODE + '[tor]\nmod = "own"\n', "tor.mod: there is no such key: did you mean mode?"),
        (NODE + '[tor]\nmode = "onw"\n', "tor.mode: Invalid enum value 'onw': did you mean own?"),
        (NODE.replace("relay", "rely"), "role: Invalid enum value 'rely': did you mean relay?"),
        (NODE.replace("state", '"\\u0000.`$"'), "there is no such key"),
        (NODE.replace("state =", "#"), "state: this is missing"),
    ],
)
def test_a_mistyped_word_comes_with_what_was_meant(wrong: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "node.toml"
    file.write_text(wrong)
    with pytest.raises(UsageError) as refused:
        load_settings(file, NodeSettings)
    assert str(refused.value).startswith(str(file))
    assert told in str(refused.value)


# Several directories


def test_several_directories_are_read(tmp_path: Path) -> None:
    pinned = load_node(tmp_path, SEVERAL).directories()
    assert pinned.quorum == 2
    assert [member.key for member in pinned.members] == [bytes([number]) * 32 for number in (1, 2, 3)]
    assert {member.address for member in pinned.members} == {ONION}
    assert load_node(tmp_path, NODE).directories() == PinnedDirectories.alone(Address(ONION), b"\xab" * 32)


def test_what_is_given_out_of_several_directories_is_read(tmp_path: Path) -> None:
    settings = load_node(tmp_path, SEVERAL)
    assert isinstance(settings.network, node_settings.JoinedNetworkSection)
    terms = NetworkSection(name=settings.network.name)
    text = network_of_several(terms, settings.network.authorities, 2)
    assert parse_toml(text.encode(), "network.toml", node_settings.NetworkFile).network == settings.network


# Networks of the central system

OTHERS = [onion_address(Seed(bytes([number]) * 32).public()) for number in (1, 2)]
CENTRAL = f"""
role = "client"
state = "/var/lib/hushcast"
[network]
carrier = "central"
name = "n"
server = "{ONION}"
server_key = "{"ab" * 32}"
sealing_key = "{"09" * 32}"
[[network.proxies]]
role = "publications"
key = "{"cd" * 32}"
address = "{OTHERS[0]}"
[[network.proxies]]
role = "deliveries"
key = "{"ef" * 32}"
address = "{OTHERS[1]}"
"""


def test_a_network_without_a_carrier_is_an_overlay(tmp_path: Path) -> None:
    assert load_node(tmp_path, NODE).carrier == "overlay"
    named = load_node(tmp_path, NODE.replace("[network]", '[network]\ncarrier = "overlay"'))
    assert named == load_node(tmp_path, NODE)


def test_a_client_of_a_central_network(tmp_path: Path) -> None:
    settings = load_node(tmp_path, CENTRAL)
    assert settings.carrier == "central"
    assert isinstance(settings.network, CentralNetworkSection)
    assert [proxy.role for proxy in settings.network.proxies()] == ["publications", "deliveries"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('"client"', '"relay"'), 'role: a central network has no relays: write role = "client"'),
        (("state =", "depth = 2\nstate ="), "depth: it belongs to the overlay"),
        (("state =", "origins = 2\nstate ="), "origins: it belongs to the overlay"),
        (("state =", "trees = 2\nstate ="), "trees: it belongs to the overlay"),
        (('"central"', '"centrall"'), "network.carrier: Invalid value 'centrall': did you mean central?"),
        (("server_key", "servr_key"), "network.servr_key: there is no such key: did you mean server_key"),
        (('carrier = "central"', ""), "network.server: there is no such key"),
        (('"deliveries"', '"delivery"'), "network.proxies #2.role: Invalid enum value 'delivery'"),
        ((OTHERS[0], "127.0.0.1:1"), "network.proxies #1.address: with transport tor"),
    ],
)
def test_what_a_central_network_cannot_have_is_refused_by_name(
    tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        load_node(tmp_path, CENTRAL.replace(*change))
    assert said in str(caught.value)


BROKERS = f"""
state = "/var/lib/hushcast"
role = "client"
[brokers]
edge = "{"ef" * 32}"
[network]
carrier = "brokers"
name = "n"
root = "{ONION}"
root_key = "{"ab" * 32}"
"""


def test_a_client_of_a_network_of_brokers(tmp_path: Path) -> None:
    settings = load_node(tmp_path, BROKERS)
    assert settings.carrier == "brokers"
    assert isinstance(settings.network, BrokersNetworkSection)
    assert (settings.network.network().profile, settings.brokers.edge_key()) == ("clear", b"\xef" * 32)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ('"client"', '"relay"'),
            'role: a network of brokers has no relays: write role = "client"; its brokers',
        ),
        (
            ("state =", "depth = 2\nstate ="),
            "depth: it belongs to the overlay, and this network is one of",
        ),
        (('"brokers"', '"broker"'), "network.carrier: Invalid value 'broker': did you mean brokers?"),
        (("ef" * 32, "ef"), "brokers.edge: "),
        ((ONION, "127.0.0.1:1"), "network.root: with transport tor"),
    ],
)
def test_what_a_network_of_brokers_cannot_have_is_refused_by_name(
    tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        load_node(tmp_path, BROKERS.replace(*change))
    assert said in str(caught.value)


def test_an_edge_broker_is_for_networks_of_brokers(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load_node(tmp_path, CENTRAL.replace("[network]", f'[brokers]\nedge = "{"ef" * 32}"\n[network]', 1))
    assert "brokers.edge: it is for networks of brokers" in str(caught.value)


def test_trees_are_for_the_overlay(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load_node(tmp_path, CENTRAL.replace("[network]", '[presence]\ntrees = "always"\n[network]', 1))
    assert "presence.trees: they are of the overlay" in str(caught.value)
