"""What words name a topic to whoever has a dictionary, and words under one pad to one another.

A dictionary has what brokers would see of each topic whose name or link is known. As published a guess costs
a hash; of a day's token it costs one Argon2id, and a private topic's cannot be guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations


@dataclass(frozen=True)
class Dictionary:
    """Names by the word, the hash or the element that brokers would see of it."""

    names: Mapping[bytes, str]

    @cached_property
    def numbers(self) -> dict[int, str]:
        """The same by numbers, to be XORed."""
        return {int.from_bytes(word, "big"): name for word, name in self.names.items()}


def named(seen: Iterable[bytes], dictionary: Dictionary) -> set[str]:
    """Return the names of what is seen without a layer (§IV-A): under `hash` by anybody on the way."""
    return {dictionary.names[one] for one in seen if one in dictionary.names}


def readings(elements: Sequence[bytes], dictionary: Dictionary) -> list[tuple[str | None, ...]]:
    """Return what different elements under one pad say, by the likeliest pads: a name or None for each.

    Of two elements there are two readings, with the names exchanged; three say which is which.
    """
    seen = [int.from_bytes(element, "big") for element in elements]
    pads = likeliest_pads(elements, dictionary)
    return [tuple(dictionary.numbers.get(element ^ pad) for element in seen) for pad in pads]


def likeliest_pads(elements: Sequence[bytes], dictionary: Dictionary) -> list[int]:
    """Return what all elements may have been XORed with; nothing if no pad makes words of two.

    The XOR of two elements is that of their words. So one guessed word gives the pad, and the right pad makes
    words of more elements than any other.
    """
    words = dictionary.numbers
    seen = [int.from_bytes(element, "big") for element in elements]
    pads: set[int] = set()
    for one, other in combinations(dict.fromkeys(seen), 2):
        apart = one ^ other
        pads.update(one ^ word for word in words if word ^ apart in words)
    explained = {pad: sum(element ^ pad in words for element in seen) for pad in pads}
    most = max(explained.values(), default=0)
    return sorted(pad for pad, count in explained.items() if count == most)
