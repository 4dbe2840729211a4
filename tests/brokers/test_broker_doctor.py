"""What a broker's doctor and its tree tell: of its own links, and nothing of those further away."""

from __future__ import annotations

from msgspec import json

from hushcast_brokers.broker.doctor import examine_aggregation, examine_below, examine_parent
from hushcast_brokers.broker.tree_report import MAX_TOLD, TreeReport, tree_told
from hushcast_protocol.base.addresses import onion_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.brokers.broker_tree import (
    MAX_BROKERS,
    BrokerPosition,
    BrokerTree,
    check_tree,
    sign_tree,
)
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_protocol.brokers.privacy import read_privacy

SEED = Seed(b"\1" * 32)
NETWORK = BrokersNetwork("n", "clear", 3600, SEED.public())
ROOT, INNER, EDGE, OTHER = (Seed(bytes([number]) * 32).public() for number in (1, 2, 3, 4))


def tree(*seats: tuple[bytes, str, bytes | None]) -> BrokerTree:
    rows = [BrokerPosition(key, onion_address(key), role, parent) for key, role, parent in seats]  # type: ignore[arg-type]
    return check_tree(sign_tree(SEED, NETWORK, 7, rows), NETWORK)


WHOLE = tree((ROOT, "root", None), (INNER, "inner", ROOT), (EDGE, "edge", INNER), (OTHER, "edge", ROOT))


def seen(own: bytes, children: set[bytes], parent_is_there: bool) -> dict[bytes, str]:
    told = tree_told("n", WHOLE, own, children, parent_is_there)
    assert (told.network, told.version) == ("n", 7)
    return {bytes.fromhex(one.key): one.seen for one in told.brokers}


def test_a_broker_sees_its_own_links() -> None:
    assert seen(ROOT, {OTHER}, False) == {
        ROOT: "this",
        INNER: "away",
        EDGE: "not seen",
        OTHER: "connected",
    }
    assert seen(INNER, {EDGE}, True) == {
        ROOT: "connected",
        INNER: "this",
        EDGE: "connected",
        OTHER: "not seen",
    }
    assert seen(EDGE, {b"a client" * 4}, False)[INNER] == "away"
    assert set(seen(rb"\9" * 32, set(), True).values()) == {"not seen"}, "one that is not listed"


def test_a_full_tree_can_be_told() -> None:
    told = tree_told("n" * 64, WHOLE, ROOT, {OTHER}, False)
    full = TreeReport(told.network, 2**63 - 1, [told.brokers[1]] * MAX_BROKERS)
    assert len(json.encode(full)) < MAX_TOLD


def test_where_brokers_aggregate_is_said() -> None:
    for text in ("clear", "community", "full/3/apart", "full/2/paper/a"):
        assert examine_aggregation(read_privacy(text)) == []
    (finding,) = examine_aggregation(read_privacy("full/3"))
    assert finding.verdict == "warning"
    assert "makes up a child" in finding.found


def test_a_parent_is_looked_at() -> None:
    verdicts = [examine_parent(state).verdict for state in ("open", "not listed", "not reached", None)]
    assert verdicts == ["good", "bad", "bad", "bad"]
    assert "hushcast admin broker admit broker.toml" in (examine_parent("not listed").advice or "")


def test_those_below_are_looked_at() -> None:
    def found(held: BrokerTree | None, own: bytes, *connected: bytes) -> list[tuple[str, str]]:
        return [(one.check, one.verdict) for one in examine_below(held, own, connected)]

    assert found(None, ROOT) == []
    assert found(WHOLE, rb"\9" * 32) == [("seat", "bad")]
    assert found(WHOLE, ROOT) == [("brokers below", "bad")]
    assert found(WHOLE, ROOT, INNER) == [("brokers below", "warning")]
    assert found(WHOLE, ROOT, INNER, OTHER) == [("brokers below", "good")]
    assert found(WHOLE, EDGE, b"a client" * 4) == []
    assert found(tree((ROOT, "root", None)), ROOT) == [("edge brokers", "bad")]
