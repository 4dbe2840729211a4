"""Attacks on small cases worked out by hand: who is named, and with what probability.

Rules go by runs, so each case is a run of one view: Spark plans an attack once for all of them.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from hushcast_analytics.adversaries import AdversaryView
from hushcast_analytics.attacks import linkage_attacks
from hushcast_analytics.attacks.catalogue import ATTACKS
from hushcast_analytics.attacks.traffic_attacks import levels
from hushcast_analytics.attacks.trained_attack import TrainingFeatures, learn, sightings, trained
from hushcast_analytics.trace_schemas import OBSERVATIONS
from hushcast_local.devices.subscription_plan import FOLLOWED_WITHIN
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


MEMBERS = ("c1", "c2", "c3")
Rows = list[dict[str, Any]]


@dataclass
class HandCase:
    """What an adversary who runs `MEMBERS` saw in one run, and whom it may name."""

    run: str
    rows: Rows
    candidates: str
    questions: dict[str, str] = field(default_factory=lambda: {"T": T, "U": U})
    """What it is asked about, by trial."""
    rosters: list[tuple[int, str]] | None = None
    """By epoch; members and candidates at first, unless given."""
    own: list[tuple[str, str, str]] = field(default_factory=list)
    """Topic, message and origin of what it published itself."""


CASES: dict[str, HandCase] = {}
"""All that one view is made of."""


def case(run: str, rows: Rows, candidates: str, **more: Any) -> None:
    assert run not in CASES
    CASES[run] = HandCase(run, rows, candidates, **more)


def view(spark: SparkSession, cases: list[HandCase], relays: int = 10, depth: int = 3) -> AdversaryView:
    blank = dict.fromkeys(OBSERVATIONS.names) | {"time": 0.0, "epoch": 0}
    rosters = {
        one.run: one.rosters or [(0, name) for name in (*MEMBERS, *one.candidates.split())] for one in cases
    }
    return AdversaryView(
        local(
            spark,
            [tuple((blank | {"run": one.run} | row).values()) for one in cases for row in one.rows],
            OBSERVATIONS,
        ),
        local(spark, [(one.run, name) for one in cases for name in MEMBERS], "run string, node string"),
        local(
            spark,
            [(run, *row) for run, listed in rosters.items() for row in listed],
            "run string, epoch long, relay string",
        ),
        local(
            spark,
            [(one.run, *asked) for one in cases for asked in one.questions.items()],
            "run string, trial string, token string",
        ),
        local(
            spark,
            [(one.run, name) for one in cases for name in one.candidates.split()],
            "run string, candidate string",
        ),
        local(
            spark,
            [(one.run, *row) for one in cases for row in one.own],
            "run string, topic string, message string, origin string",
        ),
        relays=relays,
        depth=depth,
    )


Believed = Callable[..., Posterior]


@pytest.fixture(scope="module")
def believed(spark: SparkSession) -> Believed:
    """Give what an attack believes of a case, in a tree of so many relays and levels."""
    seen = view(spark, list(CASES.values()))

    @functools.cache
    def of_all(attack: str, relays: int, depth: int) -> dict[str, Posterior]:
        rule = ATTACKS[attack].rule
        assert rule is not None
        rows = rule(replace(seen, relays=relays, depth=depth)).collect()
        return {run: collected([row for row in rows if row["run"] == run]) for run in CASES}

    return lambda attack, run, relays=10, depth=3: of_all(attack, relays, depth)[run]


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


case("shape", SHAPE, "x y z w")


def test_interior_colluders_vote_for_their_next_hops(believed: Believed) -> None:
    assert believed("parent-of-interior", "shape")["T"] == pytest.approx({"x": 2 / 3, "y": 1 / 3})


HANDED_ON = {
    "below": {"kind": "passed", "node": "c3", "next": "x", "lease": "l"},
    "sent": {"kind": "received", "node": "c3", "previous": "x", "tokens": [T], "message": "m"},
    "of another topic": {"kind": "passed", "node": "c3", "next": "x", "lease": "of another topic"},
}
for name, evidence in HANDED_ON.items():
    case(name, [*SHAPE, evidence], "x y z w")


def test_who_hands_on_to_a_colluder_is_no_root(believed: Believed) -> None:
    for run in ("below", "sent"):
        assert believed("parent-of-interior", run)["T"] == {"y": 1.0}
    assert believed("parent-of-interior", "of another topic")["T"]["x"] == pytest.approx(2 / 3)


case("leaves", [seat("c1", "x", 0), seat("c2", "a mailbox", 3), seat("c3", "c1", 3)], "x y")


def test_leaves_and_mailboxes_and_colluders_get_no_vote(believed: Believed) -> None:
    assert believed("parent-of-interior", "leaves") == {}


def marked(previous: str | None) -> Rows:
    return [
        seat("c1", "x", 2, trunk=U, previous=previous),
        seat("c2", "y", 2, trunk=V),
        # Hashed for another relay, and no mark at all: of no topic that is known.
        {**seat("c3", "z", 2), "mark": seat("c1", "z")["mark"]},
        {**seat("c3", "w", 2), "mark": "no hex"},
        # What passes makes no lease another topic's.
        {"kind": "sent", "node": "c2", "next": "y", "tokens": [T], "message": "m"},
    ]


case("marked within", marked("x"), "x y z w")
case("marked from outside", marked(None), "x y z w")


def test_a_lease_is_known_by_its_mark_and_nothing_has_to_pass(believed: Believed) -> None:
    assert believed("parent-of-interior", "marked within") == {"U": {"x": 1.0}}
    assert believed("install-depth", "marked from outside") == {"U": {"x": 1.0}}


case("inner", [seat("c1", "x", 3), seat("c3", "y", 1)], "x y z w")


def test_an_instruction_from_outside_tells_the_top(believed: Believed) -> None:
    assert believed("install-depth", "shape")["T"] == {"x": 1.0}
    assert believed("install-depth", "inner")["T"] == {"x": 0.5, "y": 0.5}


case(
    "two epochs",
    [seat("c1", "x", 3, lease=f"{e}", epoch=e) for e in range(2)] + [seat("c2", "y", 1, lease="y", epoch=1)],
    "x y z",
)


def test_each_epoch_weighs(believed: Believed) -> None:
    found = believed("predecessor", "two epochs", relays=1000)["T"]
    ratio = 1000 / 10  # 10 + 100 + 1000 places suffice, 9 a level do not
    whole = ratio**2 + ratio + 1
    assert found == pytest.approx({"x": ratio**2 / whole, "y": ratio / whole})


def passing(count: int, message: str, previous: str) -> Rows:
    """So many messages of `T` through c1 to x; `{}` in a previous hop is the number of its message."""
    return [
        {"kind": kind, "node": "c1", "tokens": [T], "message": f"{message}{i}", "popcount": 14}
        | ({"next": "x"} if kind == "sent" else {"previous": previous.format(i)})
        for i in range(count)
        for kind in ("received", "sent")
    ]


case("share", [seat("c1", "x", 9), seat("c2", "y", 9), *passing(9, "", "o")], "x y z w o")


def test_the_share_of_messages_is_a_depth(believed: Believed) -> None:
    (top, share), (leaves, least) = levels(500, 2)
    assert (top, leaves) == (22, 478)
    assert share == pytest.approx(1 / 22)
    assert least == pytest.approx(1 / 500)
    found = believed("traffic-share", "share", relays=25, depth=2)["T"]
    assert found["x"] > 0.9
    assert found["y"] < found["x"] / 100
    assert believed("trail-popcount", "share", relays=25, depth=2)["T"] == {"x": 1.0}


SCANNED = [seat("c1", "x", 4), *passing(5, "s", "n{}")]
NAMES = "x y " + " ".join(f"n{i}" for i in range(20))
case("scan", SCANNED, NAMES, own=[("T", f"s{i}", f"n{i}") for i in range(20)])
case("no scan", SCANNED, NAMES)


def test_a_scan_weighs_what_passes(believed: Believed) -> None:
    found = believed("active-scan", "scan", relays=25, depth=2)
    assert found["T"]["x"] > 0.5
    assert max(p for name, p in found["T"].items() if name != "x") == pytest.approx(found["T"]["n0"])
    assert believed("active-scan", "no scan", relays=25, depth=2) == {}


case(
    "spies",
    [
        {"kind": "received", "node": "c1", "previous": "y", "message": "m", "time": 2.0},
        {"kind": "received", "node": "c2", "previous": "x", "message": "m", "time": 1.0},
        {"kind": "drop", "node": "c3", "message": "n", "time": 1.0},
        {"kind": "received", "node": "c3", "message": "n", "time": 1.0},
        {"kind": "received", "node": "c1", "previous": "x", "message": "n", "time": 3.0},
    ],
    "x y",
    questions={"m": "m", "n": "n"},
)


def test_the_first_spy_names_the_previous_hop(believed: Believed) -> None:
    assert believed("first-spy", "spies") == {"m": {"x": 1.0}}


case(
    "author",
    [
        seat("c1", "z", 2),
        {"kind": "installed", "node": "c3", "next": "z", "lease": "of another topic", "mark": "00"},
        {"kind": "passed", "node": "c3", "next": "z", "lease": "of another topic"},
        *({"kind": "passed", "node": "c1", "next": name, "lease": "l"} for name in "xy"),
        *(row for row in passing(4, "", "x") if row["kind"] == "received"),
        *({"kind": "drop", "node": "c2", "message": f"d{i}", "tokens": [T]} for i in range(9)),
    ],
    "x y z",
)


def test_an_author_who_spares_its_own_relay(believed: Believed) -> None:
    """c1 hears of all that enters at x and y; of the author's messages some entered at x, none at y."""
    found = believed("origin-choice", "author")["T"]
    assert found["y"] == pytest.approx(math.e**3 / (math.e**3 + 1), abs=1e-6)
    assert found["x"] < 1e-9


AWAY = {(2, "x"), (3, "x"), (1, "y"), (4, "y")}
LISTED = [(e, name) for e in range(6) for name in (*MEMBERS, "x", "y") if (e, name) not in AWAY]
BOX = [
    *(
        {"kind": "sent", "node": "c1", "next": "box", "tokens": [T], "message": f"{e}", "epoch": e}
        for e in (0, 1, 4, 5)
    ),
    seat("c1", "box", previous=None),
    seat("c2", "box", trunk=U),
    *({"kind": "unreached", "node": "c1", "next": "box", "epoch": e} for e in (2, 3)),
]
case("box", BOX, "x y client", rosters=LISTED)
case(
    "box of others",
    [{**row, "tokens": [V]} if row["kind"] == "sent" else row for row in BOX],
    "x y client",
    rosters=LISTED,
)
case("listed box", [{**row, "next": "x"} for row in BOX], "x y", rosters=LISTED)


def test_presence_leaves_who_was_away(believed: Believed) -> None:
    found = believed("presence", "box")["T"]
    assert found["x"] > 0.9
    assert found["y"] < 0.01
    # It need not be a message of the topic that finds the mailbox there, or away.
    assert believed("presence", "box of others")["T"] == pytest.approx(found)
    assert believed("presence", "listed box") == {}


def links(node: str, box: str, *epochs: tuple[int, int], after: float = 0.0) -> Rows:
    """Links of a box's owner, each from one epoch to another, at the same moments of each epoch."""
    return [
        {"kind": kind, "node": node, "next": box, "epoch": epoch, "time": 3600.0 * epoch + second + after}
        for ends in epochs
        for kind, epoch, second in zip(("attached", "detached"), ends, (60.0, 3000.0), strict=True)
    ]


def taken(node: str, epochs: int) -> Rows:
    return [{"kind": "roster", "node": node, "epoch": epoch} for epoch in range(epochs)]


# x is away in epochs 4 to 9, y in 2 and 3: each is listed for three epochs more.
HOURS = {
    "x": {*range(4), *range(10, 18)},
    "y": {0, 1, *range(4, 18)},
    **{name: set(range(18)) for name in MEMBERS},
}
LATER = [(e, name) for e in range(18) for name, up in HOURS.items() if up & {e - 1, e - 2, e - 3} or e == 0]
HELD = seat("c1", "box", previous=None, day=0)
OWNED = [HELD, *taken("c1", 18), *links("c1", "box", (0, 3), (10, 17))]
case("attached", OWNED, "x y client", rosters=LATER)
case(
    "with top relays and origins",
    [
        *OWNED,
        seat("c2", "c1", 3, lease="top", previous="c1"),
        {"kind": "passed", "node": "c2", "next": "y", "lease": "top"},
        {"kind": "received", "node": "c2", "previous": "y", "tokens": [T], "message": "m", "popcount": 14},
        {"kind": "drop", "node": "c3", "tokens": [T], "message": "m"},
        {"kind": "sent", "node": "c2", "next": "c1", "tokens": [T], "message": "m"},
    ],
    "x y client",
    rosters=LATER,
)
case("nobody attached", [HELD, *taken("c1", 18)], "x y", rosters=LATER)
case("of others", [{**HELD, "mark": seat("c1", "", trunk=V)["mark"]}, *OWNED[1:]], "x y", rosters=LATER)
case(
    "of others, but for a message",
    [
        {**HELD, "mark": "00" * 16},
        *OWNED[1:],
        {"kind": "sent", "node": "c1", "next": "box", "tokens": [T], "message": "m"},
    ],
    "x y client",
    rosters=LATER,
)


def test_a_host_leaves_who_was_away_when_the_owner_was_attached(believed: Believed) -> None:
    found = believed("box-presence", "attached")["T"]
    assert found["x"] > 0.99
    assert found["y"] < 0.01
    # What colluders see elsewhere adds nothing: the host alone knows as much.
    assert believed("box-presence", "with top relays and origins")["T"] == pytest.approx(found)
    assert believed("box-presence", "nobody attached") == believed("box-presence", "of others") == {}
    assert believed("box-presence", "of others, but for a message")["T"] == pytest.approx(found)


def test_the_end_of_a_link_leaves_who_went_then(believed: Believed) -> None:
    found = believed("detach", "attached")["T"]
    assert found["x"] > 0.8
    assert found["y"] < 0.1


case(
    "tied boxes",
    [
        *(seat("c1", f"box {trunk}", previous=None, day=0, trunk=trunk) for trunk in (T, U, V)),
        *links("c1", f"box {T}", (0, 3), (5, 6)),
        *links("c1", f"box {U}", (0, 3), (5, 6), after=1.0),
        *links("c1", f"box {V}", (0, 3), (5, 6), after=700.0),
    ],
    f"{T} {U} {V}",
    questions={name: name for name in (T, U, V)},
    rosters=[(0, "x")],
)


def test_boxes_that_are_left_together_are_of_one_daemon(believed: Believed) -> None:
    found = believed("survivors", "tied boxes")
    assert found[T][U] > 0.99
    assert found[U][T] > 0.99
    assert V not in found


case(
    "moments",
    [
        seat("c1", "box", lease="1", time=1000.0),
        seat("c1", "box", trunk=U, lease="2", time=1060.0),
        seat("c1", "other", trunk=V, lease="3", time=9000.0),
    ],
    f"{T} {U} {V}",
    questions={name: name for name in (T, U, V)},
    rosters=[(0, "x")],
)


def test_topics_are_linked_by_moments_and_by_mailboxes(believed: Believed) -> None:
    moments = believed("renewal-times", "moments")
    assert moments[T][U] > 0.99
    assert moments[U][T] > 0.99
    assert believed("shared-mailbox", "moments") == {T: {U: 1.0}, U: {T: 1.0}}


case(
    "devices",
    [
        seat("c1", "one", lease="1"),
        seat("c1", "two", trunk=U, lease="2", epoch=20),
        seat("c1", "two", trunk=U, lease="2", epoch=44),
        seat("c1", "three", trunk=V, lease="3", epoch=FOLLOWED_WITHIN + 1),
    ],
    f"{T} {U} {V}",
    questions={name: name for name in (T, U, V)},
    rosters=[(0, "x")],
)


def test_a_second_device_follows_the_first_within_the_epochs_that_daemons_draw_from(
    believed: Believed,
) -> None:
    found = believed("second-device", "devices")
    assert found[T] == pytest.approx({U: 2 / 3, V: 1 / 3})
    assert found[U] == pytest.approx({T: 1 / 2, V: 1 / 2})
    assert found[V] == pytest.approx({T: 1 / 3, U: 2 / 3})
    assert linkage_attacks.FOLLOWED_WITHIN == FOLLOWED_WITHIN


SUBSCRIBED = [seat("c1", "x", 3), seat("c2", "y", 2, trunk=U, lease="k")]
FLOWS = [
    {"kind": "sent", "node": "c1", "next": name, "tokens": [token], "message": f"{token}{name}{i}"}
    for token, name, count in ((T, "x", 6), (T, "y", 2), (U, "y", 8))
    for i in range(count)
]
case("subscribed", SUBSCRIBED, "T U private")
case("flows", [*SUBSCRIBED, *FLOWS], "T U private")


def test_subscriptions_of_a_known_participant(believed: Believed) -> None:
    assert believed("dictionary", "subscribed") == {"x": {"T": 1.0}, "y": {"U": 1.0}}
    found = believed("statistical-disclosure", "flows", relays=20)
    assert found["x"] == {"T": 1.0}
    assert found["y"] == pytest.approx({"T": 0.2 / 1.15, "U": 0.95 / 1.15})


def test_training_finds_the_sign_of_a_root(spark: SparkSession) -> None:
    """In training the root is above a colluder with four children, others above one with a single one."""
    trials = [f"a{i}" for i in range(8)]
    rows = [
        seat(node, upper, children, trunk=name, lease=f"{name}{node}")
        for index, name in enumerate(trials)
        for node, upper, children in (("c1", f"n{index}", 4), ("c2", f"n{(index + 1) % 8}", 1))
    ]
    names = " ".join(f"n{i}" for i in range(8))
    seen = view(spark, [HandCase("r", rows, names, {name: name for name in trials})])
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
    attacked = view(spark, [HandCase("r", [seat("c1", "n5", 4), seat("c2", "n6", 1)], names)])
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
    seen = view(spark, [HandCase("r", rows, "n1 n2 n3 n4")])
    for learning in (TrainingFeatures(), TrainingFeatures(chains=False)):
        signs = {(row["candidate"], row["sign"]) for row in sightings(seen, learning).collect()}
        (above,) = (sign for candidate, sign in signs if candidate == "n1")
        (other,) = (sign for candidate, sign in signs if candidate == "n3")
        assert (above != other) == learning.chains


def test_evidence_is_computed_once_and_freed_when_it_is_forgotten(spark: SparkSession) -> None:
    def stored() -> set[int]:
        return set(spark.sparkContext._jsc.getPersistentRDDs().keySet())

    one = view(spark, [HandCase("freed", [seat("c1", "A")], "A B")])
    before = stored()
    found = one.once("members", lambda: one.members)
    assert one.once("members", lambda: one.candidates) is found
    assert len(stored() - before) == 1
    one.evidence.forget()
    assert stored() <= before
    assert one.once("members", lambda: one.members).count() == len(MEMBERS)
    one.evidence.forget()
