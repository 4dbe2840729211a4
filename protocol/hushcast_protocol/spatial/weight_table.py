"""The owner's table: what each word weighs, and from where on a place counts nothing; signed, by version.

An answer carries only the pages of the table with the subscription's words, which lead to the signed root.
"""

from __future__ import annotations

import math
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import msgspec

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, check, sign
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, UsageError
from hushcast_protocol.base.wire import Bytes32, Counter, PublicKey, Wire, decoder
from hushcast_protocol.spatial.answer_problems import AnswerProblem, InvalidAnswer
from hushcast_protocol.spatial.keywords import NEWEST, Keyword, Keywords, WordRule, are_words
from hushcast_protocol.spatial.located_subscription import LocatedSubscription
from hushcast_protocol.spatial.owner_keys import Handovers, OwnerKeys
from hushcast_protocol.spatial.places import MAX_DISTANCE
from hushcast_protocol.spatial.similarity import WeightedSubscription, in_order
from hushcast_protocol.spatial.word_pages import (
    MAX_PAGES,
    PAGE,
    PagedWords,
    ShownPages,
    Weight,
    pages_of,
    root_of,
)

MAX_TABLE_WORDS = PAGE * MAX_PAGES
MAX_TABLE = 10 * 1024 * 1024  # bytes of a whole table: the words of the largest batch, and their weights
_IDF = 1000  # an idf of 1 as a weight: three digits behind the point


class TableBody(Wire, frozen=True, tag="located-table/1"):
    """What the owner signs of a table: other words' weight, distance, the words' root, how texts are cut."""

    version: Counter
    other: Weight
    most: Annotated[int, msgspec.Meta(ge=1, le=MAX_DISTANCE)]
    words: Bytes32
    rule: WordRule = WordRule.RUNS
    """By which texts are cut into words; tables of before say none."""


class WholeTable(Wire, frozen=True, tag="located-weights/1"):
    """A table as a provider holds it: what is signed, and each word with its weight."""

    signed: Signed
    words: Annotated[tuple[Keyword, ...], msgspec.Meta(max_length=MAX_TABLE_WORDS)]
    weights: Annotated[tuple[Weight, ...], msgspec.Meta(max_length=MAX_TABLE_WORDS)]
    keys: Handovers = ()
    """Of the owner, up to the key that signs it."""


@dataclass(frozen=True)
class WeightTable:
    """A whole table whose signature and words were checked."""

    whole: WholeTable
    body: TableBody

    @property
    def digest(self) -> bytes:
        """By which a batch names its table."""
        return table_digest(self.whole.signed)

    @cached_property
    def paged(self) -> PagedWords:
        """The words, in pages that can be shown."""
        return PagedWords(self.whole.words, self.whole.weights)

    @cached_property
    def weights(self) -> Mapping[str, int]:
        """What each word weighs."""
        return dict(zip(self.whole.words, self.whole.weights, strict=True))

    def asked(self, subscription: LocatedSubscription) -> WeightedSubscription:
        """Return a subscription with the weights of its words."""
        weights = {word: self.weights.get(word, self.body.other) for word in subscription.words}
        return _asked(subscription, weights, self.body)

    def excerpt(self, subscription: LocatedSubscription) -> ShownPages:
        """Show what its words weigh."""
        return self.paged.showing(subscription.words)


_decode_body: Callable[[bytes], TableBody] = decoder(TableBody, "table of weights", 256)
_decode_whole: Callable[[bytes], WholeTable] = decoder(WholeTable, "table of weights", MAX_TABLE)


def idf(texts: Iterable[Keywords]) -> tuple[dict[str, int], int]:
    """Return the weights of words by inverse document frequency, and that of other words.

    ln(1 + N / n) of N messages of which n have the word, in thousandths; other words weigh as if one had it.
    Whoever signs them computes them once: the integers are what both ends use.
    """
    tally: Tally[str] = Tally()
    total = 0
    for words in texts:
        tally.update(words)
        total += 1
    by_count = {count: _idf(total, count) for count in set(tally.values())}
    return {word: by_count[tally[word]] for word in sorted(tally)}, _idf(total, 1)


def _idf(total: int, count: int) -> int:
    return max(round(_IDF * math.log(1 + total / count)), 1)


def sign_table(
    seed: Seed,
    version: int,
    weights: Mapping[str, int],
    other: int,
    most: int,
    rule: WordRule = NEWEST,
    keys: tuple[Signed, ...] = (),
) -> WeightTable:
    """Sign a table; `most` is the greatest distance as `places.chord` returns it, `keys` are hand-overs.

    Raises `UsageError`.
    """
    if len(weights) > MAX_TABLE_WORDS:
        raise UsageError(f"{len(weights):,} different words are above the {MAX_TABLE_WORDS:,} of a table")
    words = tuple(sorted(weights))
    values = tuple(weights[word] for word in words)
    body = TableBody(version, other, most, PagedWords(words, values).root, rule)
    return WeightTable(
        WholeTable(sign(seed, SignaturePurpose.LOCATED_TABLE, body), words, values, keys), body
    )


def sign_again(seed: Seed, table: WeightTable, keys: tuple[Signed, ...]) -> WeightTable:
    """Sign the weights of a table by another key, or with other hand-overs, as the next version."""
    body = table.body
    return sign_table(seed, body.version + 1, table.weights, body.other, body.most, body.rule, keys)


def read_table(data: bytes, owner: PublicKey) -> WeightTable:
    """Return a whole table of whoever is known by this key, or by one that it handed over to.

    Raises `DecodeError`, or `InvalidAnswer` if it is not as the owner signed it.
    """
    whole = _decode_whole(data)
    if len(whole.words) != len(whole.weights) or not are_words(whole.words):
        raise DecodeError("a table of weights is not in its order")
    table = WeightTable(whole, check_table(whole.signed, OwnerKeys.read(owner, whole.keys).newest))
    if table.paged.root != table.body.words:
        raise InvalidAnswer(AnswerProblem.WEIGHTS)
    return table


def table_digest(signed: Signed) -> bytes:
    """Hash what the owner signed of a table."""
    return digest(Domain.LOCATED_TABLE, signed.body)


def check_table(signed: Signed, owner: PublicKey) -> TableBody:
    """Return what the owner signed of a table; raise `InvalidAnswer` if it did not, or `DecodeError`."""
    try:
        check(owner, SignaturePurpose.LOCATED_TABLE, signed.body, signed.signature)
    except AuthenticationError:
        raise InvalidAnswer(AnswerProblem.WEIGHTS) from None
    return _decode_body(signed.body)


def asked_by_excerpt(
    subscription: LocatedSubscription, body: TableBody, shown: ShownPages
) -> WeightedSubscription:
    """Return a subscription with the weights that shown pages give its words.

    Raises `InvalidAnswer` where they are not of this table, do not show all words, or show pages besides.
    """
    if root_of(shown) != body.words:
        raise InvalidAnswer(AnswerProblem.WEIGHTS)
    pages, padded = pages_of(shown, subscription.words)
    if len(pages) < len(subscription.words):
        raise InvalidAnswer(AnswerProblem.WEIGHTS)
    if padded:
        raise InvalidAnswer(AnswerProblem.PADDED)
    weights = {
        word: dict(zip(page.words, page.weights, strict=True)).get(word, body.other)
        for word, page in pages.items()
    }
    return _asked(subscription, weights, body)


def _asked(
    subscription: LocatedSubscription, weights: Mapping[str, int], body: TableBody
) -> WeightedSubscription:
    return WeightedSubscription(
        subscription.place, in_order(weights), subscription.alpha, subscription.threshold, body.most
    )
