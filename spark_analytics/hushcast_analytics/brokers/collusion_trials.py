"""Trials: how often colluders read an honest client's interest, everybody colluding independently.

Each trial draws who colludes around one client (`broker_neighbourhood.py`) and plays the attacks on the real
keys. A word counts as read where it is named, rightly: attacks never guess at random.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from random import Random
from typing import Any

from hushcast_analytics.brokers.broker_neighbourhood import CLIENT, BrokerNeighbourhood, NeighbourNode
from hushcast_analytics.brokers.colluder_holdings import ColluderHoldings, ColluderTable, taken_off
from hushcast_analytics.brokers.dictionary_attack import Dictionary, readings
from hushcast_analytics.brokers.layer_removal import broker_and_child, by_either, compared, consecutive
from hushcast_protocol.base.intervals import wilson
from hushcast_protocol.brokers.full.layered_word import LayeredWord
from hushcast_protocol.brokers.privacy import Privacy, PrivacyProfile

WORDS = 2000  # in the colluders' dictionary
WORD = 16  # bytes, as a token has
TOGETHER = 25  # trials that share keys, not colluders
BESIDE = 4  # other children whose words a broker puts beside the client's

ATTACKS = {
    "consecutive": "a broker and its m - 1 nearest ancestors have the keys of all layers",
    "broker-and-child": "a broker and one of its children have the key of every other child",
    "either": "one of these two, at the client's own broker",
    "anywhere": "one of these two at any of the m nearest brokers, who know the client by its key of the day",
    "broker-and-sybil": "a broker alone has the key of every child, by one that it makes up",
    "brokers": "any of the m nearest brokers, with no client, but for a child that each makes up",
    "chosen-word": "the m-th ancestor sees which word a client that it makes up has asked for, too",
    "pairs": "a broker alone names two words of one child by a dictionary",
    "pairs-by-factors": "the same with the factors that it is given to compare items by",
    "table": "a broker alone names the words of its children by factors and a dictionary",
}

Names = tuple[str | None, ...]
"""What an attack says of the client's words: two that the dictionary has, then one that it has not."""


@dataclass(frozen=True)
class Cell:
    """What is drawn: the network's privacy, how many children a broker has, and which share colludes."""

    privacy: Privacy
    fan_out: int
    share: float


def played(cell: Cell, trials: int, seed: int) -> list[dict[str, Any]]:
    """Return a row for each attack: the share of honest clients' interests read, with its 95 % interval.

    `accuracy` is of words that the dictionary has, `unguessable` of words that it has not.
    """
    random = Random(f"{seed} {cell}")  # noqa: S311 - to be drawn again the same
    read, unguessable = Counter[str](), Counter[str]()
    for words, names in _tried(cell, trials, random):
        for attack, said in names.items():
            is_pair = attack.startswith("pairs")
            read[attack] += set(said[:2]) == set(words) if is_pair else said[0] == words[0]
            unguessable[attack] += said[2] is not None
    return [
        {
            "attack": attack,
            "trials": trials,
            "accuracy": read[attack] / trials,
            **dict(
                zip(("accuracy_low", "accuracy_high"), wilson(read[attack] / trials, trials), strict=True)
            ),
            "unguessable": unguessable[attack] / trials,
        }
        for attack in ATTACKS
    ]


def _tried(cell: Cell, trials: int, random: Random) -> Iterator[tuple[list[str], dict[str, Names]]]:
    """Yield, trial by trial, the names of the client's two words and what each attack says."""
    known, dictionary = _KNOWN, _dictionary(cell.privacy.profile)
    for number in range(trials):
        if number % TOGETHER == 0:
            chosen = random.sample(sorted(known), 2 + cell.fan_out)
            own = [*(known[name] for name in chosen[:2]), random.randbytes(WORD)]

            def words_of(
                node: NeighbourNode, own: list[bytes] = own, chosen: list[str] = chosen
            ) -> list[bytes]:
                return own if node == CLIENT else [known[chosen[1 + node.beside]]]

            place = BrokerNeighbourhood(cell.privacy, cell.fan_out, words_of, random.getrandbits(64))
        colluders = _colluders(place, cell.share, random)
        names = _names(place, colluders, dictionary)
        if (last := place.way[cell.privacy.layers - 1]) in colluders:
            names["chosen-word"] = _chosen(place, last, {name: known[name] for name in chosen})
        yield chosen[:2], names


def _colluders(place: BrokerNeighbourhood, share: float, random: Random) -> set[NeighbourNode]:
    """Draw who colludes of those on the way, and of the children of those who do."""
    found = {node for node in place.way if random.random() < share}
    beside = [node for broker in place.near & found for node in place.beside(broker.height)]
    return found | {node for node in sorted(beside) if random.random() < share}


def _names(
    place: BrokerNeighbourhood, colluders: set[NeighbourNode], dictionary: Dictionary
) -> dict[str, Names]:
    """Return what each attack says; one that has nothing to go by is left out."""
    found: dict[str, Names] = {}
    if colluders & place.near:
        everywhere = place.held(colluders, place.privacy.layers)
        found["anywhere"] = _opened(everywhere, by_either, dictionary)
        found["brokers"] = _opened(_brokers(place, colluders), by_either, dictionary)
    if place.way[0] not in colluders:
        return found
    held = place.held(colluders, 1)
    for name, attack in _AT_ITS_OWN_BROKER.items():
        found[name] = _opened(held, attack, dictionary)
    sybil = NeighbourNode(0, place.fan_out)
    found["broker-and-sybil"] = _opened(place.held({place.way[0], sybil}, 1), broker_and_child, dictionary)
    return found | _under_one_pad(place, dictionary)


def _chosen(place: BrokerNeighbourhood, broker: NeighbourNode, asked: dict[str, bytes]) -> Names:
    """Name the client's words that a made-up client asks for: under one path what is equal is one word.

    It may ask for all that the dictionary has; those that the client wants decide.
    """
    held = place.beside_chosen(broker, asked.values())
    (table,) = held.tables
    first, second, third, *others = (taken_off(held, table, item) for item in table.items)
    names = dict(zip(others, asked, strict=True))
    return names.get(first), names.get(second), names.get(third)


def _brokers(place: BrokerNeighbourhood, colluders: set[NeighbourNode]) -> ColluderHoldings:
    """Return what the brokers among colluders hold, each of the nearest with a child that it makes up."""
    brokers = colluders & set(place.way)
    made_up = {NeighbourNode(broker.height - 1, place.fan_out) for broker in brokers & place.near}
    return place.held(brokers | made_up, place.privacy.layers)


Attack = Callable[[ColluderHoldings, ColluderTable, LayeredWord], bytes | None]
_AT_ITS_OWN_BROKER: dict[str, Attack] = {
    "consecutive": consecutive,
    "broker-and-child": broker_and_child,
    "either": by_either,
}


def _opened(held: ColluderHoldings, attack: Attack, dictionary: Dictionary) -> Names:
    """Name what an attack opens; the client's words are the first of each table."""

    def name(number: int) -> str | None:
        elements = (attack(held, table, table.items[number]) for table in held.tables)
        return next((dictionary.names[one] for one in elements if one and one in dictionary.names), None)

    return name(0), name(1), name(2)


def _under_one_pad(place: BrokerNeighbourhood, dictionary: Dictionary) -> dict[str, Names]:
    """Name what is under one pad, or is brought there by factors, for the client's broker alone."""
    held = place.held({place.way[0]}, 1, islice(place.beside(1), BESIDE))
    (table,) = held.tables
    own = [taken_off(held, table, item) for item in table.items[:3]]
    found = {"pairs": _agreed(readings([one for one in own if one is not None], dictionary))}
    beside = [compared(held, table, item) for item in table.items[3:]]
    if place.privacy.aggregates:
        first, second, last = (compared(held, table, item) for item in table.items[:3])
        pair = [one for one in (first, second, last) if one is not None]
        found["pairs-by-factors"] = _agreed(readings(pair, dictionary))
        found["table"] = (_alone([first, *beside], dictionary), None, _alone([last, *beside], dictionary))
    return found


def _agreed(said: list[tuple[str | None, ...]]) -> Names:
    """Return the names that all readings have, in any order: all are one client's."""
    if not said or len({frozenset(one) for one in said}) > 1:
        return None, None, None
    first, second, third = said[0]
    return first, second, third


def _alone(elements: list[bytes | None], dictionary: Dictionary) -> str | None:
    """Return the name of the first of a table's elements, if there is one reading."""
    said = readings([one for one in elements if one is not None], dictionary)
    return said[0][0] if len(said) == 1 else None


_KNOWN = {f"topic {number}": Random(number).randbytes(WORD) for number in range(WORDS)}  # noqa: S311
"""Words that anybody can list, by what they stand for."""


@cache
def _dictionary(profile: PrivacyProfile) -> Dictionary:
    """Return the names of words by what brokers see of these under no layer."""
    action = Privacy("full", profile=profile).action
    return Dictionary({action.element(word): name for name, word in _KNOWN.items()})
