"""Targets: what the tomography service reads, and its machine moved by brokers that lie and who guess."""

from __future__ import annotations

from random import Random

from fuzzing import Script, Target, scripts
from mutating import mutate_packed
from tomography_examples import EPOCH, KEYS, NOW, SERVICE, WHOLE, names, question, service, statement, wanted

from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.base.wire import encode
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.frames import NewTree
from hushcast_protocol.brokers.tomography import frames
from hushcast_protocol.brokers.tomography.questions import TomographyAnswer, answered, read_answer
from hushcast_protocol.brokers.tomography.statements import Contradiction, decode_contradiction, is_proven
from hushcast_protocol.brokers.tomography.tomography_service import TomographyService

FILTERS = (WHOLE, wanted((0, 9)), wanted((2, 5)), wanted((3, 3)), wanted(None, (1, 2)), wanted((9, 3)))
BROKERS = ("a", "b", "c", "e", "root")
CAP = 3
MOST = 120  # bytes of a script: some twenty moves, each of which may sign and check


def _to_service(data: bytes) -> object:
    """The service takes what anybody says as far as a decision; nothing signed by another counts."""
    frame = frames.decode_to_service(data)
    assert frames.decode_to_service(encode(frame)) == frame
    one = service()
    if isinstance(frame, frames.StateFilters):
        for signed in frame.statements:
            try:
                one.hear(KEYS["a"], signed, NOW)
            except Refusal:
                continue
            assert signed in _statements()
    if isinstance(frame, frames.Ask):
        try:
            one.watch(KEYS["a"], frame.number, frame.question, NOW)
        except Refusal:
            return frame
        one.advance(NOW)
        assert one.watches == 1
    return frame


def _from_service(data: bytes) -> object:
    """Whoever asks: only the service's own answer to its own question counts."""
    frame = frames.decode_from_service(data)
    assert frames.decode_from_service(encode(frame)) == frame
    if isinstance(frame, frames.AskReply) and frame.answer is not None:
        assert read_answer(frame.answer, SERVICE.public(), ASKED, NOW) == ANSWER
    return frame


def _contradiction(data: bytes) -> object:
    evidence = decode_contradiction(data)
    if is_proven(evidence, KEYS["a"]):
        assert {evidence.first, evidence.second} == {*_two()}
    return evidence


def _machine(data: bytes) -> None:
    """Levels never exceed what edge brokers may vouch for; what is over or taken back does not count."""
    script, one, now = Script(data, MOST), service(cap=CAP, settle=1), NOW
    while script:
        move = script.number() % 8
        try:
            if move < 4:
                _state(script, one, now)
            elif move < 6:
                asker = script.choose(BROKERS)
                of = question(
                    script.choose(FILTERS),
                    1 + script.number() % 5,
                    script.choose(list(AnonymityCondition)),
                    origin=KEYS[script.choose(BROKERS)],
                    target=KEYS[script.choose(BROKERS)],
                    sources=names(*range(script.number() % 3)),
                )
                one.watch(KEYS[asker], script.number() % 4, of, now)
            elif move == 6:
                now += script.number()
                for item in one.advance(now):
                    assert item.number < 4
            else:
                one.leave(KEYS[script.choose(BROKERS)])
        except Refusal:
            continue
        _check(one)
    one.gathered.expire(NOW + 7200)
    assert one.gathered.rows == one.gathered.bogus == 0
    assert all(not len(one.gathered.crowd(key).poset) for key in KEYS.values())


def _state(script: Script, one: TomographyService, now: float) -> None:
    broker = script.choose(BROKERS)
    sources = names(*(100 * BROKERS.index(broker) + at for at in range(script.number() % 5)))
    signed = statement(
        broker,
        script.number() % 16,
        script.choose(FILTERS),
        sources,
        is_held=script.number() % 4 > 0,
        bogus=script.number() % 3,
        epoch=EPOCH + (script.number() == 0),
        until=int(now) + script.number(),
    )
    one.hear(KEYS[broker], signed, now)


def _check(one: TomographyService) -> None:
    edges = len(one.gathered.tree.edges)
    for key in KEYS.values():
        levels = one.gathered.crowd(key)
        for given in levels.poset:
            assert levels.level(given, AnonymityCondition.SUCCESSOR) <= CAP * edges
        assert len(one.gathered.vouched(key, WHOLE.topic)) <= CAP


def _statements() -> list[Signed]:
    return [statement("a", 1, FILTERS[1], names(1, 2)), statement("a", 2, FILTERS[2], names(2), bogus=1)]


def _two() -> tuple[Signed, Signed]:
    return statement("a", 1, FILTERS[1], names(1)), statement("a", 1, FILTERS[1], names(2))


ASKED = question(FILTERS[1], 2, sources=names(1))
ANSWER = TomographyAnswer(ASKED, True, int(NOW) + 10)


def _said_to() -> list[bytes]:
    said = [
        frames.StateFilters(tuple(_statements()), True),
        frames.Ask(1, ASKED, True, None),
        frames.Unwatch(1),
        frames.Ping(),
    ]
    return [encode(one) for one in said]


def _said_by() -> list[bytes]:
    good = answered(SERVICE, ANSWER)
    said = [
        frames.AskReply(1, good, None, 0),
        frames.AskReply(2, None, "cap", 12),
        frames.StatementRefused(1, "stale"),
        frames.LargestK(8),
        frames.Pong(),
        NewTree(good),
    ]
    return [encode(one) for one in said]


def _pairs() -> list[bytes]:
    one, other = _two()
    return [encode(Contradiction(one, other)), encode(Contradiction(one, one))]


def _moves() -> list[bytes]:
    random = Random("tomography")
    return [*scripts(12, MOST), *(bytes(random.choices(range(8), k=MOST)) for _ in range(6))]


TARGETS = [
    Target("to-tomography", _to_service, _said_to, (PeerError,), mutate_packed, weight=6),
    Target("from-tomography", _from_service, _said_by, (PeerError,), mutate_packed, weight=6),
    Target("contradiction", _contradiction, _pairs, (PeerError,), mutate_packed, weight=3),
    Target("tomography", _machine, _moves, weight=2),
]
