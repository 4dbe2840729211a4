"""The experiments with purposes: they judge rightly, compare what is comparable, and draw a page."""

from xml.etree import ElementTree

import pytest

from benchmarks.figures import Effort, PeerMissing
from benchmarks.purpose_experiments import inside, tables, verdicts
from benchmarks.purpose_experiments.page import PAPER, Results, files
from benchmarks.purpose_experiments.sides import ALL, FILTERING, MOSQUITTO, NONE

CACHED = next(one for one in FILTERING if (one.mode, one.store) == ("publish", "cached"))
SMALL = verdicts.Size(topics=60, clients=4, reservations=18, rounds=2, changes=6)


@pytest.mark.parametrize(
    ("wanted", "topic", "is_covered"),
    [
        ("site/1/2/3", "site/1/2/3", True),
        ("site/+/2/3", "site/1/2/3", True),
        ("site/+/2/3", "site/1/2/4", False),
        ("site/1/#", "site/1/2/3", True),
        ("site/1/#", "site/1", True),
        ("site/1/#", "site/2/2/3", False),
        ("site/+/#", "site", False),
    ],
)
def test_the_oracle_knows_filters(wanted, topic, is_covered):
    assert verdicts.covers(wanted, topic) == is_covered


def test_the_oracle_knows_the_rule():
    world = verdicts.World(SMALL)
    world.held = {
        ("config", "site/+/2/3"): (frozenset({"a", "b"}), frozenset()),
        ("clients", "site/1/#"): (frozenset({"a/d"}), frozenset({"a/d/g"})),
    }
    assert world.allowed("site/9/9/9", "")
    assert not world.allowed("site/9/2/3", "")
    assert world.allowed("site/9/2/3", "b/e")
    assert world.allowed("site/1/2/3", "a/d/h")
    assert not world.allowed("site/1/2/3", "a/d/g")  # prohibited
    assert not world.allowed("site/1/2/3", "b/e")  # by one owner alone
    assert not world.allowed("site/1/2/3", "a")  # the more general one


def test_every_side_delivers_the_same_in_the_broker(monkeypatch):
    sent = []
    monkeypatch.setattr(inside.Outlet, "send", lambda self, data: sent.append(data))
    counts = set()
    for side in (NONE, *FILTERING):
        broker = inside.Inside(side, inside.World(reservations=30, topics=40, wildcards=2, clients=20))
        sent.clear()
        broker.measure(40)
        counts.add(len(sent))
    assert counts == {2 * 40 + 18}  # both wildcards' readers get all, and 18 others one topic each


@pytest.mark.slow
def test_a_large_world_is_measured_and_left_as_it_was():
    found = inside.large(Effort(1, 0.01), 200)
    assert [one.side for one in found] == [NONE.name, *(one.name for one in FILTERING if one.store != "flat")]
    assert all(one.message > 0 for one in found)
    assert all(one.new > 0 and one.changed > 0 for one in found[1:])


@pytest.mark.processes
async def test_real_gateways_are_judged_and_faults_are_found():
    with_purposes, without = await verdicts.judged(SMALL, (CACHED, NONE))
    assert with_purposes.asked == without.asked > with_purposes.allowed > 0
    assert (with_purposes.false_accepts, with_purposes.false_rejects) == (0, 0)
    assert without.false_accepts == without.asked - without.allowed
    assert without.false_rejects == 0


@pytest.mark.processes
async def test_the_tables_leave_out_a_peer_that_is_missing(monkeypatch):
    def missing():
        raise PeerMissing("not here")

    monkeypatch.setattr("benchmarks.peers.mosquitto.mosquitto", missing)
    ours, peer = await tables.measured(Effort(1, 0.001), (CACHED, MOSQUITTO), clients=3)
    assert ours.latency is not None
    assert 0 < ours.latency <= ours.latency_high
    assert ours.rate > 0
    assert (peer.work, peer.missing) == (None, "not here")


def test_the_page_has_all_pictures_and_says_what_is_missing():
    rows = [
        tables.Row(side.name, 10.0 + number, 1_000.0, 100.0, 200.0) for number, side in enumerate(ALL[:-1])
    ]
    sweeps = [
        inside.Sweep(axis, side.name, tuple((place, 1.0 + place) for place in places))
        for axis, places in inside.AXES.items()
        for side in inside.SIDES
    ]
    results = Results(
        "a <machine>",
        (*rows, tables.Row(MOSQUITTO.name, missing="not here")),
        tuple(sweeps),
        (inside.Large(NONE.name, 2.0), inside.Large(CACHED.name, 2.5, 40.0, 300.0, 20_000.0)),
        (verdicts.Verdicts(CACHED.name, 1_234, 500, 0, 0, 17, 3),),
        verdicts.Size(),
        250,
        10_000,
    )
    drawn = files(results)
    assert len(drawn) == 3 + len(inside.AXES)
    for name, content in drawn.items():
        if name.endswith(".svg"):
            ElementTree.fromstring(content)
            assert content in drawn["index.html"]
    page = drawn["index.html"]
    assert "a &lt;machine&gt;" in page
    assert "mosquitto (not here)" in page
    assert "1,234" in page
    for name in PAPER:
        assert name in drawn["purposes-throughput.svg"]
    assert "not measured" not in page
    without = files(Results("m", tuple(rows[:1])))
    assert "not measured" in without["purposes-latency.svg"]
