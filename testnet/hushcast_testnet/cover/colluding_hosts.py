"""Relays that collude as hosts, seconds and porters of readers: whose box is a topic's?

Everybody reads a topic in one of its three lanes, and topics are known: which relay hosts a topic's box, and
that a colluding host sees whatever is in it, is taken for granted.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from hushcast_protocol.base.cover_terms import QUARTER
from hushcast_protocol.cover.cover_chain import CoverChain
from hushcast_protocol.cover.cover_lists import CoverLists
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.lane_seconds import LaneSeconds
from hushcast_testnet.cover.colluding_relays import CollusionScene

READ_DAYS = 60


@dataclass(frozen=True, slots=True)
class ReadersNamed:
    """Shares of readers that are named within 60 days, 0 to 1."""

    host_stays: float
    cut: float
    """Each day another host, within one quarter."""
    cut_over_turn: float
    """The same, from any day of a quarter: lists and seconds change on the way."""
    without_second: float
    """On days that are cut, where the second does not change a block, so host and porter are enough."""


def readers_named(scene: CollusionScene) -> ReadersNamed:
    """Play lists, chains and lanes as daemons draw them, and a host from all relays."""
    chance = random.Random(scene.seed)  # noqa: S311 - a simulation, no secrets
    rules = CoverRules(bytes(32), 3600, width=scene.width)
    relays = [number.to_bytes(32, "big") for number in range(1, scene.relays + 1)]
    found = [0, 0, 0, 0]
    for _ in range(scene.draws):
        bad = frozenset(chance.sample(relays, round(scene.share * scene.relays)))
        lists = [CoverLists.drawn(rules, chance.randbytes(32), relays) for _ in range(2)]
        for _ in range(scene.users):
            chain = CoverChain.drawn(relays, lists[0], 0, 0.0, chance.randbytes)
            if chain.porter not in bad:
                continue
            before = LaneSeconds.drawn(lists[0], chain, 0, chance.randbytes)
            after = before.with_lists(lists[1], chain, 1, chance.randbytes)
            is_bad = [lanes.seconds[0] in bad for lanes in (before, after)]
            hosts = [host in bad for host in chance.choices(relays, k=READ_DAYS)]
            turn = QUARTER - chance.randrange(QUARTER)  # days of the first quarter that are left
            found[0] += hosts[0] and is_bad[0]
            found[1] += any(hosts) and is_bad[0]
            found[2] += (any(hosts[:turn]) and is_bad[0]) or (any(hosts[turn:]) and is_bad[1])
            found[3] += any(hosts)
    return ReadersNamed(*(count / (scene.draws * scene.users) for count in found))
