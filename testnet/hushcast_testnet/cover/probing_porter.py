"""A porter that wants to know its daemon's third: it sends each on the list a letter with its own message.

The letters go by the daemon's waybill, so one of them reaches the third that it was sealed for. All numbers
that thirds list are taken to be seen, and all messages that they drop.
"""

from __future__ import annotations

import random

from hushcast_protocol.base.addresses import parse_address
from hushcast_protocol.base.crypto.secrets import ParcelKey, Randomness
from hushcast_protocol.base.roster import Relay
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.letter_second import LetterSecond
from hushcast_protocol.cover.letter_third import LetterThird
from hushcast_protocol.cover.letters import LetterRelays, Stage, open_letter, seal_letter
from hushcast_protocol.cover.waybills import Waybill, WaybillKey

_RULES = CoverRules(bytes(32), 3600)
_NOW = 3_000_000


def third_guessed(width: int, trials: int, is_key_known: bool, seed: int = 1) -> float:
    """Return how many times as often as by chance a porter finds the third of a daemon among `width`.

    1 is chance, `width` always. Where it knows the key in the waybill, it is as if there were none: a third
    would open whatever anybody seals to it.
    """
    chance = random.Random(seed)  # noqa: S311 - a simulation
    found = 0.0
    for _ in range(trials):
        reached, own = _probed(width, is_key_known, chance.randbytes)
        best = reached or list(range(width))
        found += (own in best) / len(best)
    return found / trials * width


def _probed(width: int, is_key_known: bool, draw: Randomness) -> tuple[list[int], int]:
    """Return the thirds that answered a letter which was sealed for them, and the daemon's."""
    keys = [ParcelKey.draw(draw) for _ in range(width + 2)]
    address = parse_address("127.0.0.1:9")
    porter, second, *thirds = (Relay(draw(32), address, key.public(), 0) for key in keys)
    own = draw(1)[0] % width
    waybill = Waybill.drawn(_RULES, second, thirds[own].id, draw)
    desk = LetterSecond(_RULES, second.id, keys[1], [one.id for one in thirds], _NOW)
    desk.show(waybill.sealed, _NOW, porter.id)
    desks = {
        one.id: LetterThird(_RULES, one.id, key, _NOW) for one, key in zip(thirds, keys[2:], strict=True)
    }
    known = waybill if is_key_known else Waybill(waybill.sealed, waybill.third, WaybillKey.draw(draw))
    made = []
    for third in thirds:
        letter = seal_letter(_RULES, LetterRelays(porter, second, third, known), _NOW, b"a probe", draw)
        made.append(letter.receipt.number)
        desk.take(
            open_letter(_RULES, Stage.PORTER, porter.id, keys[0], letter.sealed).inside, _NOW, porter.id
        )
    for onward, marked in desk.end_round(_NOW, draw):
        desks[onward].take(marked, _NOW, second.id)
    shown = {
        content.receipt.number
        for desk_of_third in desks.values()
        for _, content in desk_of_third.end_round(draw)
        if content.is_listed
    }
    return [place for place, number in enumerate(made) if number in shown], own
