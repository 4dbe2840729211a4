"""By hand: are the levels that `hushcast lab analyze` wrote those that the brokers' own code finds?

python tests/analytics/same_levels.py subscriptions.jsonl DIR
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pyarrow.parquet as pq

from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.anonymity_levels import Levels
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.subscription_lines import KnownTopics, read_subscription
from hushcast_protocol.content.predicates import write_where


def compare(file: Path, out: Path) -> int:
    """Return how many filters differ; topics are told apart by their names alone."""
    began = time.process_time()
    levels, topics = Levels(), KnownTopics()
    found: dict[Filter, None] = {}
    with file.open("rb") as lines:
        for line in lines:
            source, one = read_subscription(line, topics)
            levels.insert(one, source)
            found[one] = None
    own = {
        (one.topic.name, write_where(one.predicate)): [
            levels.level(one, condition) for condition in AnonymityCondition
        ]
        for one in found
    }
    took = time.process_time() - began
    names = [condition.value.replace("-", "_") for condition in AnonymityCondition]
    told = {
        (row["topic"], row["where"]): [row[name] for name in names]
        for row in pq.read_table(out / "levels").to_pylist()
    }
    wrong = sum(told.get(one) != wanted for one, wanted in own.items()) + len(told.keys() - own.keys())
    print(f"{len(own):,} filters, {wrong:,} differ; the brokers' own code took {took:.0f} s of CPU")
    return wrong


if __name__ == "__main__":
    sys.exit(compare(Path(sys.argv[1]), Path(sys.argv[2])) > 0)
