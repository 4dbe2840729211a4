"""`hushcast lab directories`."""

from __future__ import annotations

import json

import pytest
from running import hushcast

from hushcast_cli.testnets.directory_simulation import AUTHORITIES, MAX_SIMULATED
from hushcast_protocol.authorities.authority_set import MAX_AUTHORITIES
from hushcast_protocol.base.roster import MAX_RELAYS

SIMULATE = ("lab", "directories", "--authorities", "3", "--epochs", "5")


def test_as_many_as_there_may_be() -> None:
    assert AUTHORITIES == MAX_AUTHORITIES
    assert MAX_SIMULATED == MAX_RELAYS


async def test_simulate_prints_what_came_of_it() -> None:
    outcome = await hushcast(*SIMULATE, "--json")
    found = json.loads(outcome.stdout)
    names = ["epochs", "heads", "forks", "without", "proven", "accused", "named", "cut", "wrong"]
    assert list(found) == names
    assert (found["epochs"], found["heads"], found["forks"], found["wrong"]) == (5, 5, 0, 0)
    cut = await hushcast(*SIMULATE, "--relays", "20", "--shard-size", "4", "--json")
    assert json.loads(cut.stdout)["cut"] == 5
    people = await hushcast(*SIMULATE)
    assert "with one head   5" in people.stdout.decode()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--quorum", "1"), "between 2 and 3"),
        (("--quorum", "4"), "between 2 and 3"),
        (("--faulty", "3"), "has to be honest"),
        (("--shard-size", "3"), "3 is too small: 4 or more, or 0 for no shards"),
        (("--shard-size", "501"), "501"),
    ],
)
async def test_simulate_refuses_nonsense(arguments: tuple[str, ...], told: str) -> None:
    outcome = await hushcast(*SIMULATE, *arguments)
    assert outcome.code == 2
    assert told in outcome.stderr
