"""Judgement: is a filter k-anonymous at every broker that it would be shown to on a way?

Tarkoma and Prehofer §7: a filter of A's is tested between A and the next broker, then between that one and
the one after, until B. At each, the crowd is what that broker holds, and who is behind the filter at any
broker before, who comes with it: also where one of these holds something wider, and does not pass it on until
that goes. A itself is not asked: an edge broker counts its own clients by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from itertools import pairwise

from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.brokers.filters import Source
from hushcast_protocol.brokers.tomography.inference import ComparableQuestion
from hushcast_protocol.brokers.tomography.stated_filters import StatedFilters


def judge(gathered: StatedFilters, asked: ComparableQuestion) -> bool:
    """Tell whether the filter is anonymous on the way; raise `Refusal` where that cannot be asked.

    The reasons: `k` is larger than all edge brokers together may vouch for, or `spread` than there are;
    `cap`: the asker named more sources than it may vouch for; `not-edge`: it may vouch for none.
    """
    question, edges = asked.question, len(gathered.tree.edges)
    if question.k > gathered.cap * edges or question.spread > edges:
        raise Refusal("k")
    also: Set[Source] = _own(gathered, asked)
    if len(asked.way) < 2:
        return False  # there is no way any more
    for before, at in pairwise(asked.way):
        also |= gathered.behind(before, asked.filter)
        if also and not real(also) and not question.is_real:
            continue
        groups: Iterable[Set[Source]] = gathered.crowd(at).behind(asked.filter, question.condition, also)
        if question.is_real:
            elsewhere = gathered.elsewhere(before)
            groups = ({one for one in real(group) if one in also or elsewhere(one)} for group in groups)
        if not is_crowd(groups, question.k, question.spread):
            return False
    return True


def real(sources: Set[Source]) -> Set[Source]:
    """Return those of some sources that are somebody."""
    return {source for source in sources if isinstance(source, tuple) and source[2]}


def is_crowd(groups: Iterable[Set[Source]], k: int, spread: int) -> bool:
    """Tell whether groups of sources have k distinct ones, of `spread` different brokers, between them."""
    found: set[Source] = set()
    brokers: set[object] = set()
    for group in groups:
        if spread > 1:
            brokers.update(source[0] for source in group - found if isinstance(source, tuple))
        found |= group
        if len(found) >= k and (spread <= 1 or len(brokers) >= spread):
            return True
    return False


def _own(gathered: StatedFilters, asked: ComparableQuestion) -> frozenset[Source]:
    question = asked.question
    names = set(question.sources)
    if not names:
        return frozenset()
    if not gathered.is_edge(question.origin):
        raise Refusal("not-edge")
    if len(names | gathered.vouched(question.origin, asked.filter.topic)) > gathered.cap:
        raise Refusal("cap")
    return frozenset((question.origin, name, True) for name in names)
