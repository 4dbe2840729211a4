"""A gateway's configuration: little has to be said, and what would let strangers in is refused by name."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import hushcast
from hushcast_gateway import settings
from hushcast_gateway.network_ways import read_links
from hushcast_gateway.passwords import hashed
from hushcast_gateway.sections import listen_section as listener_settings
from hushcast_gateway.settings import MAX_USERS, GatewaySettings
from hushcast_gateway.summary import summary
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.mqtt.limits import MqttLimits
from hushcast_runtime.files import write_private
from hushcast_runtime.processes.config import load_settings, parse_settings

HASH = hashed(b"secret")
BOB = f'[users.bob]\npassword = "{HASH}"\n'
ANONYMOUS = "[anonymous]\n"
TLS = '[[listen]]\nkind = "tls"\naddress = "0.0.0.0"\nport = 8883\ncertificate = "/c"\nkey = "/k"\n'


def listen(*lines: str) -> str:
    return "[[listen]]\n" + "".join(f"{line}\n" for line in lines)


def parsed(text: str) -> GatewaySettings:
    return parse_settings(text.encode(), "gateway.toml", GatewaySettings)


def test_limits_are_set_each_by_itself() -> None:
    found = parsed(ANONYMOUS + "[limits]\nfilters = 3\nkeep_alive = 600\n")
    assert found.limits.as_protocol() == MqttLimits(filters=3, keep_alive=600)
    assert summary(found)["limits"] == ["filters: 3 instead of 5,000", "keep_alive: 600 instead of 60"]
    assert parsed(ANONYMOUS).limits.as_protocol() == MqttLimits()
    assert "limits" not in summary(parsed(ANONYMOUS))


@pytest.mark.parametrize("line", ["filters = 0", "clients = 100_001", "retained_bytes = 5", "topics = 3"])
def test_limits_that_cannot_be_meant(line: str) -> None:
    with pytest.raises(UsageError, match="limits"):
        parsed(f"{ANONYMOUS}[limits]\n{line}\n")


def test_what_waits_has_no_purposes() -> None:
    with pytest.raises(UsageError, match=r"limits\.delayed"):
        parsed(f"{ANONYMOUS}[limits]\ndelayed = 5\n[purposes]\n")


def test_as_many_users_as_there_may_be_fit_into_a_file(tmp_path: Path) -> None:
    one = '[users.device{n}]\npassword = "{known}"\npublish = ["home/{n}/#"]\nsubscribe = ["home/all/#"]\n'
    text = "".join(one.format(n=n, known=HASH) for n in range(MAX_USERS))
    (file := tmp_path / "gateway.toml").write_text(text)
    assert len(load_settings(file, GatewaySettings).users) == MAX_USERS
    with pytest.raises(UsageError, match="users"):
        parsed(text + one.format(n=MAX_USERS, known=HASH))


def test_little_has_to_be_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/home/u/.state")
    found = parsed(ANONYMOUS)
    assert [place.name for place in found.listeners()] == [
        "127.0.0.1:1883",
        "unix:/home/u/.state/hushcast-gateway/mqtt.sock",
    ]
    assert found.state_path() == Path("/home/u/.state/hushcast-gateway")
    assert (found.puback, found.properties, found.refresh_retained, found.will_jitter) == (
        "disk",
        "all",
        0,
        60,
    )
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/home/u")
    assert found.state_path() == Path("/home/u/.local/state/hushcast-gateway")


@pytest.mark.parametrize(
    ("before", "after", "takes_a_restart"),
    [
        ('issuer = "{0}"', 'issuer = "{1}"', False),
        ('grant_files = ["/g"]', 'grant_files = ["/g", "/h"]', False),
        ("strict = false", "strict = true", False),
        ('name = "cars"', 'name = "vans"', True),
        ('link_file = "/l"', 'link_file = "/m"', True),
        ("mode = ", 'store = "flat"\nmode = ', True),
        ('mode = "publish"', 'mode = "hybrid"', True),
    ],
)
def test_what_a_gateway_that_runs_takes_of_purposes(before: str, after: str, takes_a_restart: bool) -> None:
    text = """
[anonymous]
[purposes]
mode = "publish"
strict = false
[daemon]
socket = "/s"
[[gateway.alias]]
name = "cars"
link_file = "/l"
[gateway.alias.keys]
vocabulary_file = "/v"
issuer = "{0}"
reader_key_file = "/k"
grant_files = ["/g"]
"""
    began, fresh = (parsed(one.format("0" * 64, "1" * 64)) for one in (text, text.replace(before, after)))
    assert fresh != began
    assert (fresh.beside_live(began) != began) == takes_a_restart


def test_everything_can_be_said() -> None:
    found = parsed(
        'state = "/s"\npuback = "relay"\nproperties = "none"\nrefresh_retained = 6\nwill_jitter = 0\n'
        + TLS
        + 'client_ca = "/ca"\n'
        + listen('kind = "ws"', 'address = "::1"', "port = 8083", 'origins = ["https://example.org"]')
        + listen('kind = "unix"', 'path = "/run/mqtt.sock"')
        + BOB
        + 'uid = [1000]\ncertificate = "bob"\npublish = ["u/%u/#", "c/%c"]\nsubscribe = ["home/#"]\n'
        + '[anonymous]\nsubscribe = ["#"]\ndeny_subscribe = ["x/#"]\n'
        + '[daemon]\nsocket = "/run/hushcast/control.sock"\n'
        + '[[gateway.alias]]\nname = "house"\nlink_file = "/house.link"\n'
        + '[[gateway.map]]\nfrom = "home/#"\nto = "house"\n'
    )
    assert [place.name for place in found.listeners()] == [
        "0.0.0.0:8883",
        "[::1]:8083",
        "unix:/run/mqtt.sock",
    ]
    assert found.users["bob"].access().publish == ("u/%u/#", "c/%c")
    assert found.gateway.map[0].from_ == "home/#"
    assert HASH not in repr(found), "a hash is nobody's business"


CARRYING = '[daemon]\nsocket = "/s"\n[[gateway.alias]]\nname = "a"\nlink_file = "/l"\nreservations = true\n'
WRONG = {
    "nobody": ("", ["users", "hushcast gateway passwd"]),
    "a mistyped section": ("[anonymus]\n", ["anonymus", "there is no such key", "anonymous"]),
    "a mistyped key": ('[anonymous]\npublsh = ["#"]\n', ["anonymous.publsh", "publish"]),
    "a mistyped key of a user": (BOB + "pasword = 1\n", ["users.bob.pasword", "password"]),
    "a wrong type of a user": (BOB + 'uid = ["x"]\n', ["users.bob.uid #1", "a whole number, not a text"]),
    "a mistyped key of the second listener": (
        ANONYMOUS + listen('kind = "tcp"', "port = 1") + listen('kind = "tcp"', "prt = 1"),
        ["listen #2.prt", "port"],
    ),
    "a mistyped kind": (ANONYMOUS + listen('kind = "tsl"', "port = 1"), ["listen #1.kind", "tls"]),
    "no kind": (ANONYMOUS + listen("port = 1"), ["listen #1.kind", "missing"]),
    "no port": (ANONYMOUS + listen('kind = "tcp"'), ["listen #1", "port"]),
    "port 0": (ANONYMOUS + listen('kind = "tcp"', "port = 0"), ["listen #1.port", "1"]),
    "port 65536": (ANONYMOUS + listen('kind = "tcp"', "port = 65536"), ["listen #1.port", "65535"]),
    "a name for an address": (
        ANONYMOUS + listen('kind = "tcp"', "port = 1", 'address = "localhost"'),
        ["listen #1", "address", "127.0.0.1"],
    ),
    "a wide address in clear": (
        BOB + listen('kind = "tcp"', "port = 1", 'address = "0.0.0.0"'),
        ["listen #1", "other machines", "tls", "127.0.0.1"],
    ),
    "a wide address of IPv6 in clear": (
        BOB + listen('kind = "ws"', "port = 1", 'address = "::"'),
        ["listen #1", "other machines", "wss"],
    ),
    "a wide address without users": (TLS + ANONYMOUS, ["listen #1", "no user", "hushcast gateway passwd"]),
    "a wide address and users of this machine alone": (
        TLS + listen('kind = "unix"', 'path = "/s"') + "[users.bob]\nuid = [1]\n",
        ["listen #1", "no user"],
    ),
    "TLS without a key": (
        BOB + listen('kind = "tls"', "port = 1", 'certificate = "/c"'),
        ["listen #1", "key"],
    ),
    "a certificate without TLS": (
        BOB + listen('kind = "tcp"', "port = 1", 'certificate = "/c"'),
        ["listen #1", "certificate", "tls and wss"],
    ),
    "origins without WebSockets": (
        BOB + listen('kind = "tcp"', "port = 1", 'origins = ["https://a.b"]'),
        ["listen #1", "origins"],
    ),
    "an origin with a path": (
        BOB + listen('kind = "ws"', "port = 1", 'origins = ["https://a.b/"]'),
        ["listen #1", "origins", "https://example.org"],
    ),
    "a Unix socket without a path": (BOB + listen('kind = "unix"'), ["listen #1", "path"]),
    "a relative Unix socket": (BOB + listen('kind = "unix"', 'path = "s"'), ["listen #1", "absolute"]),
    "a state too deep for its longest socket": (
        f'state = "/{"d" * 92}"\n{ANONYMOUS}',
        ["state: operators.sock", "108 bytes", "107 at most", "shorter by 1"],
    ),
    "a Unix socket too deep": (BOB + listen('kind = "unix"', f'path = "/{"d" * 107}"'), ["listen #1", "107"]),
    "a path and a port": (
        BOB + listen('kind = "http"', "port = 1", 'path = "/s"'),
        ["listen #1", "two places"],
    ),
    "HTTP in clear": (
        BOB + listen('kind = "http"', "port = 1", 'address = "0.0.0.0"'),
        ["listen #1", "other machines", "https"],
    ),
    "pushes of nobody": (
        BOB + listen('kind = "http"', "port = 1", 'push_user = "al"'),
        ["listen #1.push_user", "no user al"],
    ),
    "a token in clear": (BOB + 'tokens = ["tk_x"]\n', ["users.bob.tokens #1", "hushcast gateway token"]),
    "one token for two": (
        BOB + f'tokens = ["{"a" * 64}"]\n[users.al]\ntokens = ["{"a" * 64}"]\n',
        ["users.al", "a token"],
    ),
    "a history of no filter": (ANONYMOUS + '[history]\ntopics = ["a#"]\n', ["history.topics #1", "filter"]),
    "a history of our own": (ANONYMOUS + '[history]\ntopics = ["$SYS/#"]\n', ["history.topics #1", "$"]),
    "a history of a month": (ANONYMOUS + "[history]\nhours = 505\n", ["history.hours", "504"]),
    "two at one place": (BOB + 2 * listen('kind = "tcp"', "port = 7"), ["listen #2", "same place"]),
    "too many listeners": (
        BOB + "".join(listen('kind = "tcp"', f"port = {n}") for n in range(1, 18)),
        ["listen"],
    ),
    "a password in clear": ('[users.bob]\npassword = "secret"\n', ["users.bob.password", "passwd"]),
    "a hash of another kind": (
        BOB.replace("argon2id", "argon2i"),
        ["users.bob.password", "Argon2id"],
    ),
    "a hash that takes the machine": (BOB.replace("m=65536", "m=9999999"), ["users.bob.password", "262144"]),
    "a hash that takes long": (BOB.replace("t=2", "t=99"), ["users.bob.password", "10"]),
    "a hash with a line behind it": (
        BOB.replace(HASH, HASH + "\\n"),
        ["users.bob.password", "Argon2id"],
    ),
    "a user whom nobody can be": ("[users.bob]\n", ["users.bob", "password", "uid", "certificate"]),
    "one uid for two": (BOB + "uid = [5]\n[users.al]\nuid = [5]\n", ["users.al", "5"]),
    "one certificate for two": (
        TLS + 'client_ca = "/ca"\n' + BOB + 'certificate = "x"\n[users.al]\ncertificate = "x"\n',
        ["users.al", "x"],
    ),
    "a certificate that nobody asks for": (
        BOB + 'certificate = "x"\n',
        ["users.bob.certificate", "client_ca"],
    ),
    "a uid that nobody can have": (BOB + "uid = [-1]\n", ["users.bob.uid", "0"]),
    "a uid without a Unix socket": (
        listen('kind = "tcp"', "port = 1") + BOB + "uid = [1]\n",
        ["users.bob.uid", "kind unix"],
    ),
    "an empty name": (BOB.replace("bob", '""'), ["users", "64"]),
    "a name of two lines": (BOB.replace("bob", '"a\\nb"'), ["users", "printed"]),
    "a long name": (BOB.replace("bob", "b" * 65), ["users", "64"]),
    "no filter": (BOB + 'publish = ["a", "b#"]\n', ["users.bob.publish #2", "topic filter"]),
    "a filter of a group": (BOB + 'subscribe = ["$share/g/a"]\n', ["users.bob.subscribe #1", "$share"]),
    "a name that would choose the tree": (BOB + 'publish = ["%u/#"]\n', ["users.bob.publish #1", "users/%u"]),
    "a name within a level": (BOB + 'publish = ["a/x%u"]\n', ["users.bob.publish #1", "%u"]),
    "a name that is no level": (
        BOB.replace("bob", '"b/b"') + 'publish = ["a/%u"]\n',
        ["users.b/b.publish #1", "level"],
    ),
    "the name of nobody": ('[anonymous]\npublish = ["a/%u"]\n', ["anonymous.publish #1", "%u"]),
    "the client of nobody": ('[anonymous]\npublish = ["a/%c"]\n', ["anonymous.publish #1", "%c"]),
    "a name in what is denied": (BOB + 'deny_publish = ["a/%u"]\n', ["users.bob.deny_publish #1", "%u"]),
    "too many filters": (f"[anonymous]\npublish = {['a'] * 257}\n", ["anonymous.publish", "256"]),
    "a packet too small": ("maximum_packet = 4095\n" + ANONYMOUS, ["maximum_packet", "4096"]),
    "a packet too large": ("maximum_packet = 268435461\n" + ANONYMOUS, ["maximum_packet", "268435460"]),
    "another moment of PUBACK": ('puback = "dsk"\n' + ANONYMOUS, ["puback", "disk"]),
    "other properties": ('properties = "some"\n' + ANONYMOUS, ["properties", "some"]),
    "a month of hours": ("refresh_retained = 721\n" + ANONYMOUS, ["refresh_retained", "504"]),
    "a will that waits for ever": ("will_jitter = 3601\n" + ANONYMOUS, ["will_jitter", "3600"]),
    "a relative socket of the daemon": (
        ANONYMOUS + '[daemon]\nsocket = "c"\n',
        ["daemon.socket", "absolute"],
    ),
    "an alias that open topics have": (
        ANONYMOUS + '[[gateway.alias]]\nname = "open"\nlink_file = "/l"\n',
        ["gateway.alias #1.name", "open"],
    ),
    "an alias that is no level": (
        ANONYMOUS + '[[gateway.alias]]\nname = "a/b"\nlink_file = "/l"\n',
        ["gateway.alias #1.name"],
    ),
    "a link in clear": (
        ANONYMOUS + '[[gateway.alias]]\nname = "a"\nlink = "hushcast:"\n',
        ["gateway.alias #1.link", "link_file"],
    ),
    "a relative link file": (
        ANONYMOUS + '[[gateway.alias]]\nname = "a"\nlink_file = "l"\n',
        ["gateway.alias #1.link_file", "absolute"],
    ),
    "a map to nowhere": (
        ANONYMOUS + '[[gateway.map]]\nfrom = "home/#"\nto = "house"\n',
        ["gateway.map #1.to", "house"],
    ),
    "reservations that travel without purposes": (
        ANONYMOUS + CARRYING,
        ["gateway.alias #1.reservations", "[purposes]"],
    ),
    "reservations that travel, and one purpose for all": (
        ANONYMOUS + "[purposes]\n" + CARRYING + 'purpose = "marketing"\n',
        ["gateway.alias #1.reservations", "take the alias's purpose out"],
    ),
    "reservations that travel, and keys": (
        ANONYMOUS
        + "[purposes]\n"
        + CARRYING
        + f'[gateway.alias.keys]\nvocabulary_file = "/v"\nissuer = "{"0" * 64}"\n',
        ["gateway.alias #1.reservations", "take one of the two out"],
    ),
    "an alias without a daemon": (
        ANONYMOUS + '[[gateway.alias]]\nname = "house"\nlink_file = "/l"\n',
        ["daemon.socket", "travel"],
    ),
    "metrics elsewhere": ('metrics = "10.0.0.1:9"\n' + ANONYMOUS, ["metrics", "127.0.0.1"]),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_cannot_be_used_is_named_with_the_reason(wrong: str) -> None:
    text, said = WRONG[wrong]
    with pytest.raises(UsageError) as refused:
        parsed(text)
    message = str(refused.value)
    assert message.startswith("gateway.toml: ")
    assert "\n" not in message
    assert "secret" not in message
    for word in said:
        assert word in message


ALIASES = '[daemon]\nsocket = "/s"\n' + "".join(
    f'[[gateway.alias]]\nname = "{name}"\nlink_file = "/l"\n' for name in ("a", "b")
)


@pytest.mark.parametrize("wanted", ["#", "home", "home/+/#", "+/#", "$SYS/#", "hush/x/#", "home/#/x", ""])
def test_maps_that_cannot_be(wanted: str) -> None:
    with pytest.raises(UsageError, match=r"gateway\.map #1\.from"):
        parsed(ANONYMOUS + ALIASES + f'[[gateway.map]]\nfrom = "{wanted}"\nto = "a"\n')


def test_each_topic_travels_by_one_alias() -> None:
    maps = '[[gateway.map]]\nfrom = "home/#"\nto = "a"\n[[gateway.map]]\nfrom = "home/x/#"\nto = "b"\n'
    with pytest.raises(UsageError, match=r"gateway\.map #2\.from"):
        parsed(ANONYMOUS + ALIASES + maps)
    assert parsed(ANONYMOUS + ALIASES + maps.replace("home/x", "garden")).gateway.map[1].to == "b"


def test_letters_of_unicode_make_no_second_name() -> None:
    levels = ("caf\u00e9", "a"), ("cafe\u0301", "b")
    maps = "".join(f'[[gateway.map]]\nfrom = "{level}/#"\nto = "{alias}"\n' for level, alias in levels)
    with pytest.raises(UsageError, match=r"gateway\.map #2\.from"):
        parsed(ANONYMOUS + ALIASES + maps)
    users = "".join(f'[users."{name}"]\nuid = [{n}]\n' for n, name in enumerate(("\u00e9", "e\u0301")))
    with pytest.raises(UsageError, match="in other letters"):
        parsed(users)


def test_one_topic_has_one_alias(tmp_path: Path) -> None:
    links = hushcast.new_link("a", private=True), hushcast.new_link("b", private=True)

    def read(*links: str) -> dict[str, str]:
        text = ANONYMOUS + '[daemon]\nsocket = "/s"\n'
        for number, link in enumerate(links):
            file = tmp_path / str(number)
            write_private(file, link.encode())
            text += f'[[gateway.alias]]\nname = "n{number}"\nlink_file = "{file}"\n'
        return read_links(parsed(text))

    assert read(*links) == {"n0": links[0], "n1": links[1]}
    with pytest.raises(UsageError, match="n0 is an alias of the same topic"):
        read(links[0], links[1], links[0])


def test_the_configuration_of_the_public_suites_can_be_used() -> None:
    found = load_settings(Path(__file__).with_name("conformance.toml"), GatewaySettings)
    assert [place.name for place in found.listeners()] == ["127.0.0.1:18830"]
    assert found.daemon.socket is None
    assert found.state_path().is_absolute()


def test_every_setting_says_what_it_is() -> None:
    for module in (settings, listener_settings):
        for section in ast.parse(inspect.getsource(module)).body:
            if not isinstance(section, ast.ClassDef):
                continue
            for statement, after in zip(section.body, [*section.body[1:], None], strict=True):
                if isinstance(statement, ast.AnnAssign) and "Section" not in ast.unparse(
                    statement.annotation
                ):
                    assert isinstance(after, ast.Expr), f"{section.name}: {ast.unparse(statement)}"
