"""Targets: what authorities answer a daemon, and what it keeps of whom it follows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from fuzzing import Target
from mutating import mutate_packed
from several_bench import FIRST, NETWORK, Truth, a_set, agreed, drawn
from targets_daemons import _Records, finished

from hushcast_directory.client.trusted_authorities import TrustedAuthorities
from hushcast_protocol.authorities.beacon import day_of
from hushcast_protocol.authorities.chain import ChainState
from hushcast_protocol.authorities.directory_requests import HeadAnswer, decode_directory_answer
from hushcast_protocol.authorities.head_answers import follow, roster_of
from hushcast_protocol.authorities.head_questions import Heads, decode_heads_answer
from hushcast_protocol.authorities.heads import AuthorityChange
from hushcast_protocol.base.errors import HushcastError, PeerError
from hushcast_protocol.base.wire import encode
from hushcast_runtime.logs import LEVELS, log


@cache
def _truth() -> Truth:
    """What authorities agreed on, over a change of theirs."""
    truth = Truth(a_set(3, 2))
    for epoch in range(FIRST, FIRST + 4):
        truth.agree(epoch, change=AuthorityChange(FIRST + 2, a_set(5, 3)) if epoch == FIRST else None)
    return truth


@cache
def _other() -> HeadAnswer:
    """Another head of the last epoch, which a quorum signed as well."""
    return agreed(a_set(5, 3), FIRST + 3, (4, 5))


@cache
def _answers() -> dict[str, HeadAnswer]:
    """What an honest authority answers, also after a fork."""
    newest = _truth().answer(None)
    forked = HeadAnswer((*newest.heads, _other().heads[-1]), (), (), False, None)
    return {
        "newest": newest,
        "next": _truth().answer(FIRST),
        "fork": forked,
        "nothing": _truth().answer(FIRST + 9),
        "to be cut": _to_be_cut(),
        "cut": _cut(),
    }


@cache
def _to_be_cut() -> HeadAnswer:
    """A head of a network that is in shards from the next day on."""
    shards = (drawn(FIRST + 4, day_of(FIRST) + 1),)
    return agreed(a_set(5, 3), FIRST + 4, shards=shards)


@cache
def _cut() -> HeadAnswer:
    """A head of a network in shards."""
    return agreed(a_set(5, 3), FIRST + 5, shards=(drawn(FIRST + 4, day_of(FIRST)),))


@cache
def _known() -> dict[bytes, Any]:
    """The relays of each head that a quorum signed."""
    every = [*_truth().held, _other(), _to_be_cut(), _cut()]
    return {one.heads[-1].head: roster_of(one, NETWORK).relays for one in every}


def _agreed(data: bytes) -> object:
    """Whoever begins, or held the first head, follows nothing but heads that a quorum signed."""
    answer = decode_directory_answer(data)
    if not isinstance(answer, HeadAnswer):
        return answer
    first = ChainState(a_set(3, 2))
    for begun in (first, follow(first, _answers()["next"].heads, NETWORK.id)):
        state = follow(begun, answer.heads, NETWORK.id)
        assert state.newest is None or state.newest.head in _known()
        if state.fork is not None:
            assert {state.fork.first.head, state.fork.second.head} <= _known().keys()
    if answer.heads and answer.heads[-1].head in _known():
        assert roster_of(answer, NETWORK).relays == _known()[answer.heads[-1].head]
    return answer


def _shown(data: bytes) -> object:
    """Heads that anybody shows lead nowhere but where a quorum signed, and say what is spoken there."""
    heads = decode_heads_answer(data).heads
    following = TrustedAuthorities(NETWORK, a_set(3, 2).members, 2)
    state = following.after(heads)
    following.move(state)
    assert state.newest is None or state.newest.head in _known()
    wire = following.wire(FIRST + 1)
    assert (wire is None) == (state.newest is None)
    assert wire is None or wire.now == 1
    return wire


def _followed(data: bytes) -> None:
    """A damaged record is taken for what it says, or the daemon says that it is damaged."""
    log._silent = LEVELS
    store: Any = _Records()
    store.records = {"authorities": {b"followed": data}}
    following = TrustedAuthorities(NETWORK, a_set(3, 2).members, 2)
    finished(following.load(store))
    assert following.members()
    following.coming()
    assert following.forked is None or following.state is not None
    state = following.after(_answers()["newest"].heads)
    assert state.newest is not None
    following.move(state)


def _records() -> Iterator[bytes]:
    for name in ("newest", "fork"):
        following = TrustedAuthorities(NETWORK, a_set(3, 2).members, 2)
        change = following.move(following.after(_answers()[name].heads))
        assert change.value is not None
        yield change.value


TARGETS = [
    Target(
        "directory-agreed",
        _agreed,
        lambda: [encode(answer) for answer in _answers().values()],
        (PeerError,),
        mutate_packed,
        1,
    ),
    Target(
        "heads-shown",
        _shown,
        lambda: [encode(Heads(answer.heads)) for answer in _answers().values()],
        (PeerError,),
        mutate_packed,
        1,
    ),
    Target("followed-authorities", _followed, _records, (HushcastError,), mutate_packed, 1),
]
