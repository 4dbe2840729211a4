"""Examining a network of brokers: many draws of who colludes, and whose interests they read by which attack.

Everybody but the root colludes with the same probability, independently, in each draw anew. The ground truth
poses the questions (what did each honest client ask for?), judges answers, and grants two things: the topic
of a word that colluders have under no layer, where they know the topic, for then they compute the word; and
what their own clients wanted and were sent. Popularity is public (`traffic_shares.py`).
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.adversaries import is_known
from hushcast_analytics.brokers.client_messages import carried, sent_to_clients
from hushcast_analytics.brokers.colluder_draws import ColluderDraws, drawn
from hushcast_analytics.brokers.contents import contents
from hushcast_analytics.brokers.interest_figures import Figure, observed, told
from hushcast_analytics.brokers.layer_findings import opened
from hushcast_analytics.brokers.observers import OBSERVERS
from hushcast_analytics.brokers.topic_recipients import followed
from hushcast_analytics.brokers.traffic_shares import by_shares
from hushcast_analytics.checkpoints import kept, small
from hushcast_analytics.errors import TracesError
from hushcast_analytics.profile_runs import AnalysisPlan
from hushcast_analytics.report.brokers_section import attacks_on
from hushcast_analytics.trace_files import Traces
from hushcast_analytics.work_steps import WorkStep
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.brokers.privacy import Privacy, read_privacy

Row = dict[str, Any]

_DRAWING_COST, _PLAYING_COST = 3.0, 18.0  # seconds, as in `analysis.py`


class BrokersExamination:
    """Runs over brokers, examined in steps; then `rows` has what attacks read, `observers` who learns what.

    A row of an attack has `attack`, `target` (`interest`), `profile` and what that says, `model`, `layers`
    and `aggregates`, `colluding`, `draws`, `trials`, `accuracy` (the share of honest clients' interests that
    were named, rightly) with `accuracy_low` and `accuracy_high` (Wilson's, 95 %, corrected for draws), and
    `bound`, which is 0 but for attacks that guess. A row of an observer is as `observed` has it.
    """

    def __init__(self, traces: Traces, wanted: AnalysisPlan) -> None:
        self._traces, self._wanted = traces, wanted
        self.rows: list[Row] = []
        self.observers: list[Row] = []

    def steps(self) -> list[WorkStep]:
        """Return the steps, which follow each other."""
        return [
            WorkStep("brokers: who colludes", _DRAWING_COST, self._draw),
            WorkStep("brokers: who learns what", _PLAYING_COST, self._play),
        ]

    def _draw(self) -> None:
        self._drawn = drawn(self._traces.truths, self._wanted)
        layered = self._drawn.members.where("profile like 'full/%'").select("run").distinct()
        keys = self._traces.observations.where("kind = 'agreed'").select("run")
        if (bare := layered.join(keys, "run", "left_anti").first()) is not None:
            # Nothing could be opened, and all would seem well.
            raise TracesError(f"run {bare['run']}: words under layers, and no keys of these; make it anew")

    def _play(self) -> None:
        draw, wanted = self._drawn, self._wanted
        came, to_clients = kept(carried(self._traces)), kept(sent_to_clients(self._traces))
        shown = kept(opened(self._traces, draw))
        found = (
            shown.drop("item").unionByName(followed(came, to_clients, draw)).withColumn("weight", F.lit(1.0))
        )
        found = found.unionByName(by_shares(came, to_clients, draw, wanted))
        interests = _summed(*_interests(found, draw))
        known = is_known(wanted.topics_known, wanted.seed, "topic").alias("known")
        of_topics = came.select("run", "node", "message", known)
        sent = self._traces.observations.where("kind = 'sent'")
        named = _summed(*contents(of_topics, sent, shown, draw))
        invented = self._traces.truths.where("kind = 'invented'").select("run").distinct()
        started = self._traces.truths.where("kind = 'started'").join(invented, "run").select("profile")
        with_made_up = {row["profile"] for row in started.distinct().collect()}
        for (profile, share), sums in interests.items():
            privacy = _privacy(profile)
            for attack in attacks_on(privacy.model):
                if attack != "made-up-child" or profile in with_made_up:
                    self.rows.append(told(attack, sums, privacy, share))
            if (of_messages := named.get((profile, share))) is not None:
                self.observers += observed(sums, of_messages, privacy, share)


_COUNTS_FOR = {
    attack: [attack, *(f"by {name}" for name, observer in OBSERVERS.items() if attack in observer.interests)]
    for attack in (*attacks_on("full"), *attacks_on("community"), "brokers", "blind")
}
"""For which figures an attack counts: its own, and those of observers who have it."""


def _privacy(text: str) -> Privacy:
    try:
        return read_privacy(text)
    except DecodeError:
        return Privacy()  # as brokers of an earlier version, which knew one


def _interests(found: DataFrame, draw: ColluderDraws) -> tuple[DataFrame, DataFrame]:
    """Return how many interests each copy's honest clients have, and of how many each figure is the sum."""
    answer = ["copy", "owner", "element"]
    pairs = [(attack, figure) for attack, figures in _COUNTS_FOR.items() for figure in figures]
    figures = found.sparkSession.createDataFrame(pairs, "attack string, figure string")
    said = found.join(small(figures), "attack").groupBy(*answer, "figure").agg(F.max("weight").alias("hit"))
    asked = draw.questions.join(small(draw.copies), "run")
    bad = small(draw.members.select("copy", "node"))
    honest = kept(asked.join(bad, ["copy", "node"], "left_anti"))
    hits = honest.where("known").join(said, answer).groupBy("copy", "figure").agg(F.sum("hit").alias("hits"))
    return honest.groupBy("profile", "share", "copy").agg(F.count("*").alias("n")), hits


def _summed(wholes: DataFrame, hits: DataFrame) -> dict[tuple[str, float], dict[str, Figure]]:
    """Return figures by profile and share, of all that have any hits; `""` stands for those that have none.

    `wholes` are (profile, share, copy, n), `hits` (copy, figure, hits).
    """
    n, h = F.col("n").cast("double"), F.coalesce("hits", F.lit(0.0))
    each = kept(wholes.join(hits, "copy", "left"))
    copies = each.select("profile", "share", "copy", "n").distinct()
    totals = copies.groupBy("profile", "share").agg(F.count("*"), F.sum(n), F.sum(n * n))
    sums = each.groupBy("profile", "share", "figure").agg(F.sum(h), F.sum(h * h), F.sum(h * n))
    found = {(profile, share): {"": Figure(*total)} for profile, share, *total in sorted(totals.collect())}
    for profile, share, name, hit, hh, hn in sums.where("figure is not null").collect():
        of = found[profile, share]
        of[name] = of[""]._replace(hits=hit, hh=hh, hn=hn)
    return found
