"""Attacks on small cases worked out by hand: who is named, and with what probability."""

import math
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from hushcast_analytics.adversaries import AdversaryView
from hushcast_analytics.attacks.catalogue import ATTACKS
from hushcast_analytics.attacks.traffic_attacks import levels
from hushcast_analytics.attacks.trained_attack import TrainingFeatures, learn, sightings, trained
from hushcast_analytics.trace_schemas import OBSERVATIONS
from hushcast_protocol.overlay.leases import lease_mark

pytestmark = pytest.mark.spark

Posterior = dict[str, dict[str, float]]


T, U, V = "aa", "bb", "cc"  # trunks of topics


def seat(
    node: str, upper: str, children: int = 0, lease: str = "l", trunk: str = T, **more: Any
) -> dict[str, Any]:
    """An instruction that a relay took, for topic `T` unless said."""
    mark = lease_mark(bytes.fromhex(trunk), bytes.fromhex(node)).hex()
    return {"kind": "installed", "node": node, "next": upper, "children": children, "lease": lease} | {
        "mark": mark,
        "previous": upper,
        **more,
    }


def local(spark: SparkSession, rows: list[tuple[Any, ...]], schema: str | StructType) -> DataFrame:
    """A table of so few rows that Spark sees them as it plans: it joins them without a shuffle."""
    made = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    columns = list(zip(*rows, strict=True)) or [()] * len(made)
    types = to_arrow_schema(made)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, types, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=types), made)


def view(
    spark: SparkSession, rows: list[dict[str, Any]], candidates: str, depth: int = 3, **tables: Any
) -> AdversaryView:
    """The view of an adversary who runs `c1`, `c2` and `c3` and is asked about topics `T` and `U`."""
    blank = dict.fromkeys(OBSERVATIONS.names) | {"run": "r", "time": 0.0, "epoch": 0}
    members = ["c1", "c2", "c3"]
    rosters = tables.get("rosters", [("r", 0, name) for name in [*members, *candidates.split()]])
    own = tables.get("own", [])
    return AdversaryView(
        local(spark, [tuple((blank | row).values()) for row in rows], OBSERVATIONS),
        local(spark, [("r", name) for name in members], "run string, node string"),
        local(spark, rosters, "run string, epoch long, relay string"),
        local(
            spark,
            tables.get("questions", [("r", "T", T), ("r", "U", U)]),
            "run string, trial string, token string",
        ),
        local(spark, [("r", name) for name in candidates.split()], "run string, candidate string"),
        local(spark, own, "run string, topic string, message string, origin string"),
        relays=tables.get("relays", len(members) + len(candidates.split())),
        depth=depth,
    )


def believed(name: str, seen: AdversaryView) -> Posterior:
    rule = ATTACKS[name].rule
    assert rule is not None
    return collected(rule(seen).collect())


def collected(rows: list[Any]) -> Posterior:
    found: Posterior = {}
    for row in rows:
        found.setdefault(row["trial"], {})[row["candidate"]] = row["probability"]
    return found


SHAPE = [
    seat("c1", "x", 3),
    seat("c2", "x", 2, previous=None),
    seat("c3", "y", 1),
    {"kind": "passed", "node": "c1", "next": "w", "lease": "l"},
]


def test_interior_colluders_vote_for_their_next_hops(spark: SparkSession) -> None:
    assert believed("parent-of-interior", view(spark, SHAPE, "x y z w"))["T"] == pytest.approx(
        {"x": 2 / 3, "y": 1 / 3}
    )


def test_who_hands_on_to_a_colluder_is_no_root(spark: SparkSession) -> None:
    below = {"kind": "passed", "node": "c3", "next": "x", "lease": "l"}
    sent = {"kind": "received", "node": "c3", "previous": "x", "tokens": [T], "message": "m"}
    for evidence in (below, sent):
        assert believed("parent-of-interior", view(spark, [*SHAPE, evidence], "x y z w"))["T"] == {"y": 1.0}
    other = {"kind": "passed", "node": "c3", "next": "x", "lease": "of another topic"}
    assert believed("parent-of-interior", view(spark, [*SHAPE, other], "x y z w"))["T"]["x"] == pytest.approx(
        2 / 3
    )


def test_leaves_and_mailboxes_and_colluders_get_no_vote(spark: SparkSession) -> None:
    rows = [seat("c1", "x", 0), seat("c2", "a mailbox", 3), seat("c3", "c1", 3)]
    assert believed("parent-of-interior", view(spark, rows, "x y")) == {}


def test_a_lease_is_known_by_its_mark_and_nothing_has_to_pass(spark: SparkSession) -> None:
    rows = [
        seat("c1", "x", 2, trunk=U),
        seat("c2", "y", 2, trunk=V),
        # Hashed for another relay, and no mark at all: of no topic that is known.
        {**seat("c3", "z", 2), "mark": seat("c1", "z")["mark"]},
        {**seat("c3", "w", 2), "mark": "no hex"},
        # What passes makes no lease another topic's.
        {"kind": "sent", "node": "c2", "next": "y", "tokens": [T], "message": "m"},
    ]
    for name in ("parent-of-interior", "install-depth"):
        rows[0]["previous"] = None if name == "install-depth" else "x"
        assert believed(name, view(spark, rows, "x y z w")) == {"U": {"x": 1.0}}


def test_an_instruction_from_outside_tells_the_top(spark: SparkSession) -> None:
    assert believed("install-depth", view(spark, SHAPE, "x y z w"))["T"] == {"x": 1.0}
    inner = [seat("c1", "x", 3), seat("c3", "y", 1)]
    assert believed("install-depth", view(spark, inner, "x y z w"))["T"] == {"x": 0.5, "y": 0.5}


def test_each_epoch_weighs(spark: SparkSession) -> None:
    rows = [seat("c1", "x", 3, lease=f"{e}", epoch=e) for e in range(2)] + [
        seat("c2", "y", 1, lease="y", epoch=1)
    ]
    found = believed("predecessor", view(spark, rows, "x y z", relays=1000, depth=3))["T"]
    ratio = 1000 / 10  # 10 + 100 + 1000 places suffice, 9 a level do not
    whole = ratio**2 + ratio + 1
    assert found == pytest.approx({"x": ratio**2 / whole, "y": ratio / whole})


def test_the_share_of_messages_is_a_depth(spark: SparkSession) -> None:
    (top, share), (leaves, least) = levels(500, 2)
    assert (top, leaves) == (22, 478)
    assert share == pytest.approx(1 / 22)
    assert least == pytest.approx(1 / 500)
    messages = [
        {
            "kind": kind,
            "node": "c1",
            "next": "x" if kind == "sent" else None,
            "previous": "o",
            "message": f"{i}",
        }
        for i in range(9)
        for kind in ("received", "sent")
    ]
    rows = [seat("c1", "x", 9), seat("c2", "y", 9)] + [{**m, "tokens": [T], "popcount": 14} for m in messages]
    seen = view(spark, rows, "x y z w o", relays=25, depth=2)
    found = believed("traffic-share", seen)["T"]
    assert found["x"] > 0.9
    assert found["y"] < found["x"] / 100
    assert believed("trail-popcount", seen)["T"] == {"x": 1.0}


def test_a_scan_weighs_what_passes(spark: SparkSession) -> None:
    own = [("r", "T", f"s{i}", f"n{i}") for i in range(20)]
    passing = [
        {"kind": kind, "node": "c1", "tokens": [T], "message": f"s{i}", "popcount": 14}
        | ({"next": "x"} if kind == "sent" else {"previous": f"n{i}"})
        for i in range(5)
        for kind in ("received", "sent")
    ]
    names = "x y " + " ".join(f"n{i}" for i in range(20))
    found = believed(
        "active-scan", view(spark, [seat("c1", "x", 4), *passing], names, relays=25, depth=2, own=own)
    )
    assert found["T"]["x"] > 0.5
    assert max(p for name, p in found["T"].items() if name != "x") == pytest.approx(found["T"]["n0"])
    assert (
        believed("active-scan", view(spark, [seat("c1", "x", 4), *passing], names, relays=25, depth=2)) == {}
    )


def test_the_first_spy_names_the_previous_hop(spark: SparkSession) -> None:
    rows = [
        {"kind": "received", "node": "c1", "previous": "y", "message": "m", "time": 2.0},
        {"kind": "received", "node": "c2", "previous": "x", "message": "m", "time": 1.0},
        {"kind": "drop", "node": "c3", "message": "n", "time": 1.0},
        {"kind": "received", "node": "c3", "message": "n", "time": 1.0},
        {"kind": "received", "node": "c1", "previous": "x", "message": "n", "time": 3.0},
    ]
    questions = [("r", "m", "m"), ("r", "n", "n")]
    assert believed("first-spy", view(spark, rows, "x y", questions=questions)) == {"m": {"x": 1.0}}


def test_an_author_who_spares_its_own_relay(spark: SparkSession) -> None:
    """c1 hears of all that enters at x and y; of the author's messages some entered at x, none at y."""
    rows = [
        seat("c1", "z", 2),
        {"kind": "installed", "node": "c3", "next": "z", "lease": "of another topic", "mark": "00"},
        {"kind": "passed", "node": "c3", "next": "z", "lease": "of another topic"},
    ]
    rows += [{"kind": "passed", "node": "c1", "next": name, "lease": "l"} for name in "xy"]
    rows += [
        {
            "kind": "received",
            "node": "c1",
            "previous": "x",
            "message": f"{i}",
            "tokens": [T],
            "popcount": 14,
        }
        for i in range(4)
    ]
    rows += [{"kind": "drop", "node": "c2", "message": f"d{i}", "tokens": [T]} for i in range(9)]
    found = believed("origin-choice", view(spark, rows, "x y z"))["T"]
    assert found["y"] == pytest.approx(math.e**3 / (math.e**3 + 1), abs=1e-6)
    assert found["x"] < 1e-9


def test_presence_leaves_who_was_away(spark: SparkSession) -> None:
    rosters = [("r", e, name) for e in range(6) for name in ("c1", "c2", "c3", "x", "y")]
    rosters = [
        row for row in rosters if row not in {("r", 2, "x"), ("r", 3, "x"), ("r", 1, "y"), ("r", 4, "y")}
    ]
    rows = [
        {"kind": "sent", "node": "c1", "next": "box", "tokens": [T], "message": f"{e}", "epoch": e}
        for e in (0, 1, 4, 5)
    ]
    rows += [seat("c1", "box", previous=None), seat("c2", "box", trunk=U)]
    rows += [{"kind": "unreached", "node": "c1", "next": "box", "epoch": e} for e in (2, 3)]
    found = believed("presence", view(spark, rows, "x y client", rosters=rosters))["T"]
    assert found["x"] > 0.9
    assert found["y"] < 0.01
    # It need not be a message of the topic that finds the mailbox there, or away.
    others = [{**row, "tokens": [V]} if row["kind"] == "sent" else row for row in rows]
    assert believed("presence", view(spark, others, "x y client", rosters=rosters))["T"] == pytest.approx(
        found
    )
    listed = [{**row, "next": "x"} for row in rows]
    assert believed("presence", view(spark, listed, "x y", rosters=rosters)) == {}


def test_topics_are_linked_by_moments_and_by_mailboxes(spark: SparkSession) -> None:
    questions = [("r", name, name) for name in (T, U, V)]
    rows = [
        seat("c1", "box", lease="1", time=1000.0),
        seat("c1", "box", trunk=U, lease="2", time=1060.0),
        seat("c1", "other", trunk=V, lease="3", time=9000.0),
    ]
    seen = view(spark, rows, f"{T} {U} {V}", questions=questions, rosters=[("r", 0, "x")])
    moments = believed("renewal-times", seen)
    assert moments[T][U] > 0.99
    assert moments[U][T] > 0.99
    assert believed("shared-mailbox", seen) == {T: {U: 1.0}, U: {T: 1.0}}


def test_subscriptions_of_a_known_participant(spark: SparkSession) -> None:
    rows = [seat("c1", "x", 3), seat("c2", "y", 2, trunk=U, lease="k")]
    seen = view(spark, rows, "T U private")
    assert believed("dictionary", seen) == {"x": {"T": 1.0}, "y": {"U": 1.0}}
    flows = [
        {"kind": "sent", "node": "c1", "next": name, "tokens": [token], "message": f"{token}{name}{i}"}
        for token, name, count in ((T, "x", 6), (T, "y", 2), (U, "y", 8))
        for i in range(count)
    ]
    found = believed("statistical-disclosure", view(spark, rows + flows, "T U private", relays=20))
    assert found["x"] == {"T": 1.0}
    assert found["y"] == pytest.approx({"T": 0.2 / 1.15, "U": 0.95 / 1.15})


def test_training_finds_the_sign_of_a_root(spark: SparkSession) -> None:
    """In training the root is above a colluder with four children, others above one with a single one."""
    trials = [f"a{i}" for i in range(8)]
    questions = [("r", name, name) for name in trials]
    rows = [
        seat(node, upper, children, trunk=name, lease=f"{name}{node}")
        for index, name in enumerate(trials)
        for node, upper, children in (("c1", f"n{index}", 4), ("c2", f"n{(index + 1) % 8}", 1))
    ]
    names = " ".join(f"n{i}" for i in range(8))
    seen = view(spark, rows, names, questions=questions)
    targets = spark.createDataFrame(
        [("r", name, f"n{index}") for index, name in enumerate(trials)],
        "run string, trial string, target string",
    )
    model = learn(seen, targets, TrainingFeatures())
    ratios = {row["sign"]: row["ratio"] for row in model.collect()}
    (good,) = (ratio for sign, ratio in ratios.items() if "children=4" in sign)
    (bad,) = (ratio for sign, ratio in ratios.items() if "children=1" in sign)
    # Eight subscribers and 56 others: 8.5/8.5 against 0.5/56.5, and 0.5/8.5 against 8.5/56.5.
    assert good == pytest.approx(math.log(56.5 / 0.5))
    assert bad == pytest.approx(math.log(0.5 / 8.5 / (8.5 / 56.5)))
    attacked = view(spark, [seat("c1", "n5", 4), seat("c2", "n6", 1)], names)
    found = collected(trained(attacked, model, TrainingFeatures()).collect())["T"]
    whole = math.exp(good) + math.exp(bad) + 6
    assert found == pytest.approx({"n5": math.exp(good) / whole, "n6": math.exp(bad) / whole})


def test_a_relay_below_that_has_colluders_below_it_is_a_sign(spark: SparkSession) -> None:
    rows = [
        seat("c1", "n1", 2),
        {"kind": "passed", "node": "c1", "next": "n2", "lease": "l"},
        seat("c2", "n2", 0),
        seat("c3", "n3", 2),
        {"kind": "passed", "node": "c3", "next": "n4", "lease": "l"},
    ]
    seen = view(spark, rows, "n1 n2 n3 n4")
    for learning in (TrainingFeatures(), TrainingFeatures(chains=False)):
        signs = {(row["candidate"], row["sign"]) for row in sightings(seen, learning).collect()}
        (above,) = (sign for candidate, sign in signs if candidate == "n1")
        (other,) = (sign for candidate, sign in signs if candidate == "n3")
        assert (above != other) == learning.chains
