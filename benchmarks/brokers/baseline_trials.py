"""Trials of the two approaches that the paper finds wanting (§IV): how often colluders read an interest.

Around one client its broker and the others of its group are drawn, everybody colluding independently. Each
client asks for one word that the colluders' dictionary has, and one that it has not.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from random import Random
from typing import Any

from benchmarks.brokers.baselines import hashed, read_sealed, sealed
from hushcast_analytics.brokers.collusion_trials import WORD, WORDS
from hushcast_analytics.brokers.dictionary_attack import Dictionary, named
from hushcast_protocol.base.intervals import wilson

KEY = 32  # bytes of a group's key
OTHERS = 50  # in the client's group

ATTACKS = {
    "hash": "a client's broker and a dictionary",
    "group, outside": "a client's broker, which is not of the group",
    "group, with clients": "a client's broker, with the key of any client of the group that colludes",
}


def played_baselines(share: float, trials: int, seed: int) -> list[dict[str, Any]]:
    """Return a row for each attack, as `collusion_trials.played` does."""
    random = Random(f"{seed} baselines {share}")  # noqa: S311 - to be drawn again the same
    hashes, words = _dictionaries()
    read, unguessable = Counter[str](), Counter[str]()
    for _ in range(trials):
        name = f"topic {random.randrange(WORDS)}"
        own = [_word(name), random.randbytes(WORD)]
        key = random.randbytes(KEY)
        is_broker_in = random.random() < share
        keys = [key for _ in range(OTHERS) if random.random() < share]
        boxes = [sealed(word, key) for word in own] if is_broker_in else []
        said = {
            "hash": named([hashed(word) for word in own] if is_broker_in else [], hashes),
            "group, outside": named(read_sealed(boxes, []), words),
            "group, with clients": named(read_sealed(boxes, keys[:1]), words),
        }
        for attack, names in said.items():
            read[attack] += name in names
            unguessable[attack] += len(names - {name})
    found = []
    for attack in ATTACKS:
        mean = read[attack] / trials
        low, high = wilson(mean, trials)
        row = {"attack": attack, "trials": trials, "accuracy": mean, "accuracy_low": low}
        found.append(row | {"accuracy_high": high, "unguessable": unguessable[attack] / trials})
    return found


@cache
def _dictionaries() -> tuple[Dictionary, Dictionary]:
    """Return the names of what brokers see under `hash`, and of words themselves."""
    names = {_word(f"topic {number}"): f"topic {number}" for number in range(WORDS)}
    return Dictionary({hashed(word): name for word, name in names.items()}), Dictionary(names)


def _word(name: str) -> bytes:
    return Random(name).randbytes(WORD)  # noqa: S311 - that anybody can list
