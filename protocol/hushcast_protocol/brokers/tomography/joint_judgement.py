"""Joint judgement: of filters that nobody may show first, and all may show at once.

A filter is shown only where a crowd is, and a crowd is only where filters are shown: so strictly nothing ever
propagates (Tarkoma and Prehofer §7, the bootstrap problem). A service that is trusted can count those who
ask together, as they will stand when all that hear yes have shown their filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.filters import Filter, Source
from hushcast_protocol.brokers.tomography.inference import ComparableQuestion
from hushcast_protocol.brokers.tomography.judgement import judge
from hushcast_protocol.brokers.tomography.stated_filters import StatedFilters

MAX_TURNS = 16  # times that all are judged; in chains longer than that, each is judged as it stands alone

_Pledge = tuple[PublicKey, Filter, Source]


def judge_together(gathered: StatedFilters, asked: Sequence[ComparableQuestion]) -> list[bool]:
    """Tell of each question whether its filter is anonymous once those of all that hear yes are shown.

    All are taken to be shown; those that are not anonymous then are taken back, and so on until all that is
    left is. Under `source` and `successor` no larger set would do. What `judge` refuses is not anonymous.
    """
    is_in = [True] * len(asked)
    for _ in range(MAX_TURNS):
        pledged = _show(gathered, [one for one, stays in zip(asked, is_in, strict=True) if stays])
        try:
            now = [stays and _is_anonymous(gathered, one) for one, stays in zip(asked, is_in, strict=True)]
        finally:
            for at, given, source in pledged:
                gathered.crowd(at).remove(given, source)
        if now == is_in:
            return now
        is_in = now
    return [_is_anonymous(gathered, one) for one in asked]


def _is_anonymous(gathered: StatedFilters, asked: ComparableQuestion) -> bool:
    try:
        return judge(gathered, asked)
    except Refusal:
        return False


def _show(gathered: StatedFilters, asked: Sequence[ComparableQuestion]) -> list[_Pledge]:
    """Put filters where they would be shown; return what was not there before."""
    pledged: list[_Pledge] = []
    for one in asked:
        own = {(one.question.origin, name, True) for name in one.question.sources}
        for before, at in pairwise(one.way):
            crowd = gathered.crowd(at)
            new = (own | gathered.behind(before, one.filter)) - crowd.poset.sources(one.filter)
            for source in new:
                crowd.insert(one.filter, source)
                pledged.append((at, one.filter, source))
    return pledged
