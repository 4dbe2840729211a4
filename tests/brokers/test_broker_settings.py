"""Settings of brokers: what is no tree, leaks, or belongs to another broker is refused, with the way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from hushcast_brokers.broker.settings import BrokerSettings, RootSettings, load_broker, parse_broker
from hushcast_brokers.broker.summary import broker_summary
from hushcast_brokers.broker_sections import BrokerFile, broker_lines, seats_of
from hushcast_brokers.network_file import brokers_section
from hushcast_protocol.base.addresses import Address, onion_address
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.broker_tree import (
    MAX_BROKERS,
    MAX_CHILDREN,
    MAX_LEVELS,
    BrokerPosition,
    check_seats,
)
from hushcast_protocol.brokers.frames import AnonymityTerms
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_runtime.processes.config import MAX_LARGE_CONFIG, parse_toml

ROOT_KEY = b"\xff" * 32
NETWORK = BrokersNetwork("n", "clear", 3600, ROOT_KEY)
ROOT = 'role = "root"\nstate = "/s"\n[network]\ncarrier = "brokers"\nname = "n"\n'
NODE = brokers_section(NETWORK, onion_address(ROOT_KEY))
INNER, EDGE = (f'role = "{role}"\nstate = "/s"\n{{}}{NODE}' for role in ("inner", "edge"))


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def lines(number: int, role: str = "inner", parent: int | None = None, at: int | None = None) -> str:
    address = onion_address(key(number if at is None else at))
    return broker_lines(key(number), address, role, None if parent is None else key(parent).hex())


def refusal(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        parse_broker(text.encode(), "b.toml")
    return str(caught.value).removeprefix("b.toml: ")


def test_little_has_to_be_said() -> None:
    root = parse_broker(ROOT.encode(), "f")
    assert isinstance(root, RootSettings)
    assert (root.seats(ROOT_KEY), root.transport, root.network.epoch_seconds) == ((), "tor", 3600)
    assert root.network.network_of(ROOT_KEY) == NETWORK
    edge = parse_broker(EDGE.format("").encode(), "f")
    assert isinstance(edge, BrokerSettings)
    assert (edge.minimum().k, edge.clients(), edge.wish(), edge.network.network()) == (1, None, None, NETWORK)
    assert edge.doctors_socket() == Path("/s/doctor.sock")


def test_what_needs_conditions_is_refused_where_no_broker_reads_them() -> None:
    full = EDGE.format("").replace('"clear"', '"full"')
    assert isinstance(parse_broker(full.encode(), "f"), BrokerSettings)
    assert refusal(full + "[anonymity]\nk = 5\n").startswith(
        'anonymity: with privacy = "full" no broker reads'
    )
    service = f'[tomography]\nkey = "{key(1).hex()}"\naddress = "{onion_address(key(1))}"\n'
    assert refusal(full + service).startswith('tomography: with privacy = "full" no broker reads')
    root = (ROOT + 'privacy = "full"\nlayers = 2\n').encode()
    assert broker_summary(parse_broker(root, "f"))["network"] == [
        "n, full, 2 layers, epochs of 3,600 seconds"
    ]
    assert "is for testnets" in refusal(ROOT + 'privacy = "full"\nprofile = "paper"\n')


def test_the_root_lists_the_tree() -> None:
    root = parse_broker((ROOT + lines(1) + lines(2, "edge", 1)).encode(), "f")
    assert isinstance(root, RootSettings)
    assert root.seats(ROOT_KEY) == (
        BrokerPosition(key(1), onion_address(key(1)), "inner", ROOT_KEY),
        BrokerPosition(key(2), onion_address(key(2)), "edge", key(1)),
    )
    assert RootSettings.live == {"log", "listed", "communities", "wire"}, "what a reload applies"
    summary = broker_summary(root)
    assert summary["brokers"] == [
        f"inner: {key(1).hex()[:16]}… at {onion_address(key(1))}, below the root",
        f"edge: {key(2).hex()[:16]}… at {onion_address(key(2))}, below {key(1).hex()[:16]}…",
    ]
    assert broker_summary(parse_broker(ROOT.encode(), "f"))["brokers"] == ["none yet"]


def test_a_full_tree_fits_into_a_file(tmp_path: Path) -> None:
    text = ROOT.replace('"n"', f'"{"n" * 64}"')
    inner = MAX_CHILDREN
    text += "".join(lines(n, "inner", 1 if n > 1 else None) for n in range(1, inner + 1))
    text += "".join(lines(n, "edge", 2 + n % (inner - 1)) for n in range(inner + 1, MAX_BROKERS))
    file = tmp_path / "root.toml"
    file.write_text(text + "# a comment\n" * 1000)
    root = load_broker(file)
    assert isinstance(root, RootSettings)
    assert len(root.listed) == MAX_BROKERS - 1
    assert len(
        check_seats([BrokerPosition(ROOT_KEY, "127.0.0.1:1", "root", None), *root.seats(ROOT_KEY)], ROOT_KEY)
    ) == (MAX_BROKERS)
    file.write_text("#" * (MAX_LARGE_CONFIG + 1))
    with pytest.raises(UsageError, match="at most"):
        load_broker(file)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (ROOT.replace('carrier = "brokers"\n', ""), "network.carrier: this is missing"),
        (ROOT.replace('"brokers"', '"central"'), "network.carrier"),
        (ROOT.replace('"/s"', f'"/{"s" * 99}"'), "state: ready.sock would have a path of"),
        (
            ROOT + lines(1) + lines(1, at=2),
            "#1 and #2 have the same key: a broker has one seat, and one parent",
        ),
        (ROOT + lines(1) + lines(2, at=1), "#1 and #2 have the same address: each broker has one of its own"),
        (ROOT + lines(1, parent=9), "brokers #1.parent: it is not listed: admit it first"),
        (
            ROOT + lines(1, "edge") + lines(2, parent=1),
            "brokers #2.parent: an edge broker has clients below it",
        ),
        (
            ROOT + lines(1, parent=2) + lines(2, parent=1),
            "in a loop, or more than 8 below each other: give one",
        ),
        (ROOT + lines(1, parent=1), "in a loop"),
        (
            ROOT + lines(1) + "".join(lines(n, parent=n - 1) for n in range(2, MAX_LEVELS + 2)),
            "more than 8 below each other: give one of them another parent",
        ),
        (ROOT + "".join(lines(n) for n in range(1, MAX_CHILDREN + 2)), "more than 64 below it: give one"),
        (
            ROOT + broker_lines(key(1), Address("127.0.0.1:80"), "edge", None),
            "#1.address: with transport tor",
        ),
        (ROOT + lines(1, "root"), "brokers #1.role: Invalid enum value 'root'"),
        ('state = "/s"\n' + NODE, "role: this is missing: write root, inner or edge"),
        (ROOT + "[edge]\nopen = true\n", "edge: it is an edge broker's, which has the clients"),
        ("parent = 1\n" + ROOT, "parent: the root has none"),
        (f'communities = ["{"a" * 64}"]\n' + ROOT, 'communities: they are for privacy = "community"'),
        ('communities = ["a"]\n' + ROOT, "communities #1"),
        (f'communities = ["{"a" * 64}"]\n' + EDGE.format(""), "communities: the root alone lists them"),
        ("\x00", "is not TOML"),
        ('role = "inner"\nstate = "/s"\n', "network: this is missing: `hushcast join network.toml --config`"),
        (
            INNER.format("[anonymity]\nk = 2\n"),
            "anonymity: it is an edge broker's, which has the clients: write",
        ),
        (
            INNER.format("[edge]\n"),
            'edge: it is an edge broker\'s, which has the clients: write role = "edge"',
        ),
        (EDGE.format("[anonymity]\nk = 0\n"), "anonymity.k: write a whole number >= 1"),
        (EDGE.format("[anonymity]\n"), "anonymity.k: this is missing"),
        (
            EDGE.format('[anonymity]\nk = 2\ncondition = "all"\n'),
            "anonymity.condition: Invalid enum value 'all'",
        ),
        (EDGE.format(f'[edge]\nclients = ["{"a" * 64}"]\n'), "with open = true anybody is served"),
        (EDGE.format('[edge]\nopen = false\nclients = ["a"]\n'), "edge.clients #1"),
        ('transport = "tcp"\n' + EDGE.format(""), "network.root: with transport tcp"),
        (EDGE.format("") + lines(1), "brokers: the root alone lists brokers"),
    ],
)
def test_what_no_broker_could_use_is_refused(text: str, told: str) -> None:
    assert told in refusal(text)


def test_what_an_edge_asks_and_whom_it_serves() -> None:
    one = "ab" * 32
    text = EDGE.format(
        '[anonymity]\nk = 5\ncondition = "successor"\notherwise = "wait"\n'
        f'[edge]\nopen = false\nclients = ["{one}"]\n'
    )
    edge = parse_broker(text.replace("state", f'parent = "{key(7).hex()}"\nstate', 1).encode(), "f")
    assert isinstance(edge, BrokerSettings)
    assert edge.minimum() == AnonymityTerms(5, AnonymityCondition.SUCCESSOR, "wait")
    assert (edge.clients(), edge.wish()) == (frozenset({bytes.fromhex(one)}), key(7).hex())
    summary = broker_summary(edge)
    assert summary["clients"] == ["1 listed, nobody else"]
    assert summary["anonymity"] == ["k = 5, successor, otherwise wait"]
    assert summary["parent"] == [f"{key(7).hex()[:16]}…"]


def test_who_names_the_root_as_parent_asks_for_no_other() -> None:
    text = INNER.format("").replace("state", f'parent = "{ROOT_KEY.hex()}"\nstate', 1)
    inner = parse_broker(text.encode(), "f")
    assert isinstance(inner, BrokerSettings)
    assert inner.wish() is None


@pytest.mark.parametrize("parent", [None, 3])
def test_what_a_broker_gives_out_is_read(parent: int | None) -> None:
    read = parse_toml(lines(1, "edge", parent).encode(), "broker.toml", BrokerFile).brokers
    assert seats_of(read, ROOT_KEY) == (
        BrokerPosition(key(1), onion_address(key(1)), "edge", ROOT_KEY if parent is None else key(parent)),
    )
