"""A subscription: a place, words, how much the place counts beside the words, and how near is near enough."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import msgspec

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.wire import Wire, encode
from hushcast_protocol.spatial.json_lines import read_object
from hushcast_protocol.spatial.keywords import NEWEST, Keyword, Keywords, WordRule, asked_words
from hushcast_protocol.spatial.places import Place, place_of
from hushcast_protocol.spatial.similarity import WHOLE

MAX_KEYWORDS = 64  # of one subscription; the paper's have one to five

_KEYS = {
    "id": "text, may be left out",
    "lat": "number",
    "lon": "number",
    "keywords": "texts",
    "alpha": "number",
    "threshold": "number",
}
EXAMPLE = '{"id": "a", "lat": 60.17, "lon": 24.94, "keywords": ["shoe"], "alpha": 0.5, "threshold": 0.7}'

Thousandths = Annotated[int, msgspec.Meta(ge=0, le=WHOLE)]


class LocatedSubscription(Wire, frozen=True, tag="located-subscription/1"):
    """A place, distinct sorted words, alpha and theta in thousandths."""

    place: Place
    words: Annotated[tuple[Keyword, ...], msgspec.Meta(min_length=1, max_length=MAX_KEYWORDS)]
    alpha: Thousandths
    threshold: Thousandths

    @property
    def digest(self) -> bytes:
        """By which an answer says what it answers."""
        return digest(Domain.LOCATED_ASKED, encode(self))


def read_subscription(line: bytes, rule: WordRule = NEWEST) -> tuple[str, LocatedSubscription]:
    """Return the id, empty where there is none, and the subscription that a line of JSON is.

    Alpha and theta are rounded to thousandths, keywords are cut into words by the feed's rule. Raises
    `UsageError`.
    """
    given = read_object(line, _KEYS, EXAMPLE)
    return given.get("id", ""), make_subscription(given, rule)


def make_subscription(given: Mapping[str, Any], rule: WordRule = NEWEST) -> LocatedSubscription:
    """Return the subscription of a place, keywords, alpha and threshold, as a line has them; `UsageError`.

    They are `lat`, `lon`, `alpha` and `threshold`, which are numbers, and `keywords`, which are texts.
    """
    words = keywords_as_asked(given["keywords"], rule)
    shares = {}
    for key in ("alpha", "threshold"):
        if not 0 <= given[key] <= 1:
            raise UsageError(f"{key!r} is {given[key]}: from 0 to 1")
        shares[key] = round(given[key] * WHOLE)
    return LocatedSubscription(place_of(given["lat"], given["lon"]), words, **shares)


def keywords_as_asked(keywords: Iterable[str], rule: WordRule) -> Keywords:
    """Return the words of keywords, one at least; raise `UsageError`."""
    words = asked_words(" ".join(keywords), rule)
    if not words:
        raise UsageError("'keywords' has no word: name one at least, of letters, digits or signs")
    if len(words) > MAX_KEYWORDS:
        raise UsageError(f"'keywords' has {len(words):,} words, above {MAX_KEYWORDS}")
    return words
