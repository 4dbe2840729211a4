"""Parties: who of the central system works together, and what each may be granted besides what it saw."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from hushcast_analytics.checkpoints import small

SERVER, PUBLICATIONS, DELIVERIES, USER = "server", "publications", "deliveries", "client"
"""Roles, as traces have them."""


@dataclass(frozen=True)
class Party:
    """The server, all proxies of a role, and so many users, or some of these.

    Proxies are `told` who their users are, as VB §4.1 has it; over Tor they are not. Who `guesses` knows the
    share of the topics that the analysis is asked for; others know their own users' topics alone.
    """

    server: bool = False
    publications: bool = False
    deliveries: bool = False
    users: int = 0
    told: bool = False
    guesses: bool = False

    @property
    def opens(self) -> bool:
        """Whether it has the server's key: the server's own, or s/k from a proxy and k from a user."""
        return self.server or bool(self.users and (self.publications or self.deliveries))

    @property
    def name(self) -> str:
        """Return who it is, as people read it; whether proxies are told stands beside it."""
        proxies = {
            (True, True): "both proxies",
            (True, False): "publications proxy",
            (False, True): "deliveries proxy",
        }.get((self.publications, self.deliveries))
        users = "a user" if self.users == 1 else f"{self.users} users"
        who = [
            *(["server"] if self.server else []),
            *([proxies] if proxies else []),
            *([users] if self.users else []),
        ]
        said = f"{', '.join(who[:-1])} and {who[-1]}" if len(who) > 1 else who[0]
        return said + (", guessing" if self.guesses else "")


def parties(users: Iterable[int]) -> list[Party]:
    """Return the parties that are measured, with so many users where there may be some."""
    some = sorted({max(1, k) for k in (1, *users)})
    return [
        Party(server=True),
        Party(server=True, guesses=True),
        *(Party(server=True, users=k) for k in some),
        *_with_proxies(publications=True),
        *_with_proxies(deliveries=True),
        *_with_proxies(publications=True, deliveries=True),
        *(Party(True, True, True, told=told) for told in (False, True)),
        *(Party(True, True, True, some[-1], told, True) for told in (False, True)),
    ]


def _with_proxies(*, publications: bool = False, deliveries: bool = False) -> Iterator[Party]:
    for users in (0, 1):
        for told in (False, True):
            yield Party(False, publications, deliveries, users, told)


def numbered(spark: SparkSession, found: list[Party]) -> DataFrame:
    """Return (party, server, publications, deliveries, users, told, guesses, opens), by their numbers."""
    rows = [
        (n, p.server, p.publications, p.deliveries, p.users, p.told, p.guesses, p.opens)
        for n, p in enumerate(found)
    ]
    columns = (
        "party int, server boolean, publications boolean, deliveries boolean, users int, told boolean, "
        "guesses boolean, opens boolean"
    )
    return spark.createDataFrame(rows, columns)


def members_of(people: DataFrame, found: DataFrame, seed: int) -> DataFrame:
    """Return (run, party, node, role, told, guesses, opens): each party's daemons in each run.

    `people` has the columns (run, node, role). Users are drawn by the seed and their names, so that runs of
    two profiles can be compared; a larger party has those of a smaller one and more.
    """
    chance = F.xxhash64(F.lit(seed), "node")
    place = F.row_number().over(Window.partitionBy("run", "role").orderBy(chance, "node"))
    theirs = (
        ((F.col("role") == SERVER) & F.col("server"))
        | ((F.col("role") == PUBLICATIONS) & F.col("publications"))
        | ((F.col("role") == DELIVERIES) & F.col("deliveries"))
        | ((F.col("role") == USER) & (F.col("place") <= F.col("users")))
    )
    return (
        people.withColumn("place", place)
        .crossJoin(small(found))
        .where(theirs)
        .select("run", "party", "node", "role", "told", "guesses", "opens")
    )
