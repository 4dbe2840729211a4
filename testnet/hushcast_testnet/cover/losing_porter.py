"""A porter that loses letters: what it learns by whose messages do not come, and how often pairs are drawn.

It sees in which round each letter of its daemons is due, and is in league with somebody who reads the topic.
For each daemon it draws rounds, and loses all that is due in them: an author's messages never come out of
those, anybody else's do. The daemon sends them anew.
"""

from __future__ import annotations

import math
import random

from hushcast_protocol.base.cover_terms import QUARTER
from hushcast_protocol.cover.cover_chain import CoverChain, CoverLoss
from hushcast_protocol.cover.cover_lists import CoverLists
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.letter_contents import LOOP_EVERY, NUMBER, LetterReceipt
from hushcast_protocol.cover.letter_rounds import LetterRounds

_RULES = CoverRules(bytes(32), 3600)
_DAY = 86_400
_DROPPED = 2  # rounds from the one in which a letter is due to its list
_NAMED = 0.9  # probability that an author is named with
_MOST = 400  # messages, one a day


def messages_until_named(users: int, lost: float, seed: int = 1) -> int:
    """Return how many messages a porter that loses a share of rounds needs to name one of `users`.

    Each that is heard speaks for the author by 1 against the share of rounds that is not lost.
    """
    asked = math.log((users - 1) * _NAMED / (1 - _NAMED))
    chance = random.Random(seed)  # noqa: S311 - a simulation, no secrets
    rounds = LetterRounds(_RULES, chance.randbytes)
    lost_rounds: dict[int, bool] = {}
    passed: dict[int, list[LetterReceipt]] = {}
    heard = 0
    for now in range(_MOST * _RULES.rounds_in(1)):
        if now % _RULES.rounds_in(1) == 0:
            rounds.publish(b"%d" % now, now, is_held=False)
        for letter in rounds.plan(now):
            receipt = LetterReceipt(chance.randbytes(NUMBER), chance.random() < 1 / LOOP_EVERY)
            rounds.note_sent(letter, receipt)
            if not lost_rounds.setdefault(letter.due, chance.random() < lost):
                passed.setdefault(letter.due + _DROPPED, []).append(receipt)
        heard += len(rounds.note_listed({one.number for one in passed.pop(now, [])}, now - 1))
        rounds.given_up()
        if heard * -math.log(1 - lost) >= asked:
            return heard
    return _MOST


def pairs_drawn(seed: int = 1) -> int:
    """Return how many pairs a daemon draws in a year while its first porter loses all letters."""
    chance = random.Random(seed)  # noqa: S311 - a simulation, no secrets
    relays = [number.to_bytes(32, "big") for number in range(1, 101)]
    lists = CoverLists.drawn(_RULES, chance.randbytes(32), relays)
    chain = first = CoverChain.drawn(relays, lists, 0, 0.0, chance.randbytes)
    pairs = 1
    for day in range(365):
        now, quarter = float(day * _DAY), day // QUARTER
        loss = CoverLoss.LETTERS if chain.porter == first.porter else CoverLoss.NOTHING
        before = chain
        chain = chain.with_lists(lists, quarter, now, loss, chance.randbytes)
        chain = chain.with_porter(relays, None, now, loss, chance.randbytes)
        pairs += chain.pair_since != before.pair_since and before.porter == first.porter
    return pairs
