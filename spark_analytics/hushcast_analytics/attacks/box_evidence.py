"""Evidence of boxes: when the owners of the boxes asked about were attached to colluding hosts.

A host that knows a topic finds the topic's boxes among its own, as any relay finds its leases: the elements
of what it holds are hashes that it can compute. The generator's traces have a mark for that; those of
daemons, where an owner sends none, show it by the messages that go to a box.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from hushcast_analytics.adversaries import AdversaryView
from hushcast_analytics.attacks.tree_evidence import about, seats
from hushcast_analytics.trace_schemas import EPOCHS_A_DAY

LISTED_FOR = 3  # epochs for which a relay that left stays on rosters; a test compares
KEEPS = 2  # days from the beginning of a lease's to the end of what its host keeps: its own, and one more

USED_FROM = 0.5  # share of the epochs in which something is kept from which on a host is the one in use


def attached(view: AdversaryView) -> DataFrame:
    """Return (run, node, next): colluding hosts, and who attached to them."""
    return view.once("attached", lambda: _attached(view))


def _attached(view: AdversaryView) -> DataFrame:
    return view.observations.where("kind = 'attached'").select("run", "node", "next").distinct()


def boxes(view: AdversaryView) -> DataFrame:
    """Return (run, trial, node, next, epoch, until): boxes at colluding hosts, a row for each lease.

    From the `epoch` in which it was taken to before `until` something may wait there. The next hop of a lease
    is a box if somebody attached by its key.
    """
    return view.once("boxes", lambda: _boxes(view))


def _boxes(view: AdversaryView) -> DataFrame:
    place = ("run", "trial", "node", "next")
    by_messages = about(view, view.observations.where("kind = 'sent'")).select(*place)
    found = seats(view).select(*place).unionByName(by_messages).distinct()
    until = ((F.col("day") + KEEPS) * EPOCHS_A_DAY).alias("until")
    leases = view.observations.where("kind = 'installed' and previous is null")
    held = leases.select("run", "node", "next", "epoch", until).distinct()
    return found.join(attached(view), ["run", "node", "next"], "left_semi").join(
        held, ["run", "node", "next"]
    )


def visits(view: AdversaryView) -> DataFrame:
    """Return (run, trial, node, next, came, left): from which epoch to which an owner was attached.

    `left` is the epoch in which its link ended; where the host itself went first, or is there still, the last
    in which it took a roster.
    """
    return view.once("visits", lambda: _visits(view))


def _visits(view: AdversaryView) -> DataFrame:
    of_box = Window.partitionBy("run", "node", "next").orderBy("time")
    links = view.observations.where("kind in ('attached', 'detached')").select(
        "run", "node", "next", "time", "epoch", "kind"
    )
    began = links.withColumn("ended", F.lead("epoch").over(of_box)).where("kind = 'attached'")
    asked = boxes(view).select("run", "trial", "node", "next").distinct()
    lives = _lives(view)
    return (
        began.join(asked, ["run", "node", "next"])
        .join(lives, ["run", "node"])
        .where("epoch between first and last")
        .select(
            "run",
            "trial",
            "node",
            "next",
            F.col("epoch").alias("came"),
            F.least("ended", "last").alias("left"),
        )
    )


def _lives(view: AdversaryView) -> DataFrame:
    """Return (run, node, first, last): from which epoch to which one of its relays was there."""
    there = view.observations.where("kind = 'roster'").select("run", "node", "epoch").distinct()
    in_order = Window.partitionBy("run", "node").orderBy("epoch")
    life = F.col("epoch") - F.row_number().over(in_order)
    return (
        there.withColumn("life", life)
        .groupBy("run", "node", "life")
        .agg(F.min("epoch").alias("first"), F.max("epoch").alias("last"))
        .select("run", "node", "first", "last")
    )


def box_states(view: AdversaryView) -> DataFrame:
    """Return (run, trial, epoch, up): whether an owner was attached, where that tells whether it was there.

    An owner is always attached to the host that it uses: where it is not, it is away. To the other one it
    comes when it likes, so that only its being there tells something.
    """
    away = used(view).where(~F.col("up")).select("run", "trial", "epoch", "up")
    there = _epochs_there(view).select("run", "trial", "epoch", F.lit(True).alias("up"))
    return away.unionByName(there).groupBy("run", "trial", "epoch").agg(F.max("up").alias("up"))


def used(view: AdversaryView) -> DataFrame:
    """Return (run, trial, node, next, epoch, up): hosts that take themselves for the one in use.

    It is a row for each epoch in which one was there and kept something: whether the owner was attached. In
    half of these epochs at least it was; to a host that an owner uses in another's place it seldom is.
    """
    return view.once("used", lambda: _used(view))


def _used(view: AdversaryView) -> DataFrame:
    held = boxes(view).join(_lives(view), ["run", "node"])
    start, end = F.greatest("epoch", "first"), F.least(F.col("until") - 1, "last")
    place = ("run", "trial", "node", "next")
    kept = (
        held.where(start <= end).select(*place, F.explode(F.sequence(start, end)).alias("epoch")).distinct()
    )
    there = _epochs_there(view).withColumn("up", F.lit(True))
    states = kept.join(there, [*place, "epoch"], "left").fillna(False, ["up"])
    share = F.avg(F.col("up").cast("double")).over(Window.partitionBy(*place))
    return states.withColumn("share", share).where(F.col("share") >= USED_FROM).drop("share")


def _epochs_there(view: AdversaryView) -> DataFrame:
    came = F.explode(F.sequence("came", "left")).alias("epoch")
    there = visits(view).select("run", "trial", "node", "next", came)
    return view.once("epochs there", there.distinct)


def relays_there(view: AdversaryView) -> DataFrame:
    """Return (run, epoch, relay): which relays were there, as later rosters tell.

    A relay that is there in an epoch is on the next `LISTED_FOR` rosters; so who is on all of them was there,
    or away for fewer epochs than these.
    """
    return view.once("relays there", lambda: _relays_there(view))


def _relays_there(view: AdversaryView) -> DataFrame:
    after = F.explode(F.array(*(F.col("epoch") - number for number in range(1, LISTED_FOR + 1))))
    rosters = view.rosters.select("run", "epoch").distinct()
    taken = (
        rosters.select("run", after.alias("epoch")).groupBy("run", "epoch").agg(F.count("*").alias("rosters"))
    )
    listed = view.rosters.select("run", "relay", after.alias("epoch"))
    counted = listed.groupBy("run", "epoch", "relay").agg(F.count("*").alias("listed"))
    return (
        counted.join(taken.where(F.col("rosters") == LISTED_FOR), ["run", "epoch"])
        .where(F.col("listed") == LISTED_FOR)
        .select("run", "epoch", "relay")
    )


def relays_gone(view: AdversaryView) -> DataFrame:
    """Return (run, epoch, relay): relays that were there in an epoch and not in the next one."""
    there = relays_there(view)
    before = there.select("run", (F.col("epoch") + 1).alias("epoch"), "relay")
    known = there.select("run", "epoch").distinct()
    gone = before.join(known, ["run", "epoch"], "left_semi").join(
        there, ["run", "epoch", "relay"], "left_anti"
    )
    return gone.select("run", (F.col("epoch") - 1).alias("epoch"), "relay")
