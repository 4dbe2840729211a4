"""What edge brokers ask of the whole network's crowd, and show by the answers: never without enough there."""

from __future__ import annotations

import pytest
from network_levels import play
from tomography_examples import CAP, EPOCH, KEYS, NOW, SEEDS, SERVICE, service, tree, wanted

from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition, Fallback
from hushcast_protocol.brokers.clear_words import outside
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.network_crowd import CrowdWish, SubscriptionGroup
from hushcast_protocol.brokers.tomography import crowd_watch as limits
from hushcast_protocol.brokers.tomography.broker_statements import BrokerStatements
from hushcast_protocol.brokers.tomography.crowd_watch import AGAIN_AFTER, CrowdWatch
from hushcast_protocol.brokers.tomography.filter_probe import ladder
from hushcast_protocol.brokers.tomography.frames import Ask, AskReply, Unwatch
from hushcast_protocol.brokers.tomography.questions import TomographyAnswer, answered
from hushcast_protocol.brokers.tomography.statements import MAX_CROWD
from hushcast_protocol.brokers.tomography.tree_paths import between

F = wanted((0, 9))
ANN, BOB, EVE = (name * 32 for name in (b"a", b"b", b"e"))
SOURCE = AnonymityCondition.SOURCE


class Asking:
    """Edge broker a, which asks, and a service that says what it is told to."""

    def __init__(self) -> None:
        self.watching = CrowdWatch(SERVICE.public(), 1)
        self.watching.use(between(tree(), KEYS["a"], KEYS["root"]) or ())
        self._drawn = 0
        self.stating = BrokerStatements(SEEDS["a"], self._draw, 0, cap=CAP, life=600)

    def _draw(self, size: int) -> bytes:
        self._drawn += 1
        return self._drawn.to_bytes(size, "big")

    def say(self, *wishes: CrowdWish, now: float = NOW, epoch: int = EPOCH) -> list[Ask | Unwatch]:
        return self.watching.ask(wishes, self.stating, epoch, now)[0]

    def hear(self, ask: Ask | Unwatch, is_anonymous: bool, now: float = NOW, valid: float = 300) -> bool:
        """Answer a question; return whether something else is known then."""
        assert isinstance(ask, Ask)
        signed = answered(SERVICE, TomographyAnswer(ask.question, is_anonymous, int(now + valid)))
        return bool(self.watching.hear(AskReply(ask.number, signed, None, 0), now))

    def says(self, *own: bytes, k: int = 3, now: float = NOW, given: Filter = F) -> bool:
        return self.watching.says(given, SOURCE, k, set(own), now)


def wish(
    *sources: bytes,
    given: Filter = F,
    k: int = 3,
    otherwise: Fallback = "wait",
    condition: AnonymityCondition = SOURCE,
) -> CrowdWish:
    demands = frozenset([(condition, k)])
    return CrowdWish(SubscriptionGroup(given, demands, otherwise), demands, sources, None, "edge")


@pytest.mark.slow
@pytest.mark.parametrize("condition", AnonymityCondition)
def test_no_filter_stands_without_enough_whoever_comes_and_goes(condition: AnonymityCondition) -> None:
    play(f"of {condition}", 25, condition)
    play(f"of {condition}", 25, condition, ("wait", "generalise", "bogus", "refuse"))


@pytest.mark.slow
def test_under_source_the_network_is_enough_where_one_edge_broker_is_not() -> None:
    counts = play("enough", 60, SOURCE)
    assert counts["shown"] > 0


def test_a_yes_counts_while_it_is_valid_and_those_who_were_named_are_there() -> None:
    one = Asking()
    (ask,) = one.say(wish(ANN, BOB))
    assert isinstance(ask, Ask)
    assert ask.is_watch
    assert ask.question.is_real
    assert len(ask.question.sources) == 2
    assert not one.says(ANN, BOB)
    assert one.hear(ask, True)
    assert not one.hear(ask, True)
    assert one.says(ANN, BOB)
    assert one.says(ANN, BOB, EVE)
    assert one.says(ANN, BOB, k=2)
    assert not one.says(ANN, BOB, k=4)
    assert not one.says(ANN)
    assert not one.says(ANN, BOB, given=wanted((0, 8)))
    assert one.watching.deadline() == NOW + 300
    assert one.watching.expire(NOW + 299) == set()
    assert one.says(ANN, BOB, now=NOW + 299)
    assert not one.says(ANN, BOB, now=NOW + 300)
    assert one.watching.expire(NOW + 300) == {F.topic}
    assert [type(frame) for frame in one.say(wish(ANN, BOB), now=NOW + 300)] == [Ask, Unwatch]


def test_nothing_is_asked_twice_and_what_is_no_wish_any_more_is_taken_back() -> None:
    one = Asking()
    (ask,) = one.say(wish(ANN))
    assert one.say(wish(ANN)) == []
    one.hear(ask, False)
    assert one.say(wish(ANN)) == []
    first, second = one.say(wish(ANN, BOB))
    assert isinstance(first, Ask), "who came besides is told, before the old question is taken back"
    assert second == Unwatch(ask.number)
    one.hear(first, True)
    assert one.say(wish(ANN, BOB, EVE)) == [], "who comes to what is shown is stated"
    later, over = one.say(wish(ANN, EVE))
    assert over == Unwatch(first.number)
    assert not one.says(ANN, EVE)
    assert one.watching.is_due(NOW + 1) is False
    assert [type(frame) for frame in one.say()] == [Unwatch]
    assert len(one.watching) == 0
    assert not one.hear(later, True), "an answer that comes too late says nothing"


def test_a_fall_is_told_from_a_link_that_has_ended() -> None:
    one = Asking()
    group = wish(ANN, BOB).group
    (ask,) = one.say(wish(ANN, BOB))
    one.hear(ask, True)
    one.watching.reopened()
    assert one.says(ANN, BOB), "what was said is valid still"
    assert one.watching.is_due(NOW)
    (again,) = one.say(wish(ANN, BOB))
    assert one.hear(again, False)
    assert not one.watching.has_sunk(group), "the service may have started again"
    assert one.hear(again, True)
    assert one.hear(again, False)
    assert one.watching.has_sunk(group)
    assert not one.says(ANN, BOB)


def test_clients_are_named_as_they_are_stated_and_anew_in_each_epoch() -> None:
    one = Asking()
    one.stating.due(EPOCH, NOW)
    (ask,) = one.say(wish(ANN, BOB))
    one.stating.due(EPOCH, NOW + 5)
    named = one.stating.names(F, [ANN, BOB])
    assert isinstance(ask, Ask)
    assert named == ask.question.sources
    one.stating.due(EPOCH + 1, NOW + 10)
    again, _ = one.say(wish(ANN, BOB), epoch=EPOCH + 1)
    assert isinstance(again, Ask)
    assert not set(again.question.sources) & set(named)
    one.say()
    one.stating.due(EPOCH + 1, NOW + 15)
    later = one.stating.names(F, [ANN, BOB])
    assert not set(later) & set(again.question.sources), "nobody asks about them any more"


def test_a_refusal_is_no_and_is_asked_again_later() -> None:
    one = Asking()
    (ask,) = one.say(wish(ANN, BOB))
    one.hear(ask, True)
    assert one.watching.hear(AskReply(ask.number, None, "no-way", 0), NOW) == {F.topic}
    assert not one.says(ANN, BOB)
    assert one.say(wish(ANN, BOB), now=NOW + AGAIN_AFTER - 1) == []
    (again, _) = one.say(wish(ANN, BOB), now=NOW + AGAIN_AFTER)
    assert isinstance(again, Ask)
    forged = answered(SEEDS["b"], TomographyAnswer(again.question, True, int(NOW) + 300))
    for signed in (forged, Signed(b"", bytes(64))):
        with pytest.raises(PeerError):
            one.watching.hear(AskReply(again.number, signed, None, 0), NOW)
        assert not one.says(ANN, BOB)


def test_another_way_to_the_root_makes_answers_void() -> None:
    one = Asking()
    (ask,) = one.say(wish(ANN, BOB))
    one.hear(ask, True)
    way = between(tree(c="root", d="root", a="d", b="c", e="d"), KEYS["a"], KEYS["root"])
    assert one.watching.use(way or ()) == {F.topic}
    assert not one.says(ANN, BOB)
    assert [type(frame) for frame in one.say(wish(ANN, BOB))] == [Ask, Unwatch]
    one.watching.use(())
    assert [type(frame) for frame in one.say(wish(ANN, BOB))] == [Unwatch], "it is not in the tree"


def test_a_probe_asks_for_its_full_k_at_every_step_and_names_clients_for_one_step_alone() -> None:
    one = Asking()
    want = wish(ANN, BOB, given=wanted((40, 41)), k=4, otherwise="generalise")
    own = {ANN, BOB}
    asked = []
    for _ in range(9):
        put = [frame for frame in one.say(want) if isinstance(frame, Ask)]
        asked += put
        if one.watching.says(want.group.filter, SOURCE, 4, own, NOW):
            break
        for ask in put:
            one.hear(ask, True)
        shown = one.watching.wider(want.group, own, NOW)
        if one.watching.says(want.group.filter, SOURCE, 4, own, NOW):
            shown = want.group.filter
        want = want._replace(shown=shown, crowd="network")
    steps = [step.filter for step in ladder(want.group.filter, 4, limits.PROBE_STEPS)]
    assert [outside(ask.question.filter) for ask in asked] == steps
    assert {ask.question.k for ask in asked} == {4}
    shown_by_own = wish(ANN, given=wanted((40, 41)), otherwise="generalise")
    shown_by_own = shown_by_own._replace(shown=wanted((0, 63)), crowd="edge")
    (only,) = (frame for frame in Asking().say(shown_by_own) if isinstance(frame, Ask))
    assert outside(only.question.filter) == wanted((40, 41))


def test_who_has_two_conditions_is_not_named() -> None:
    one = Asking()
    both = frozenset([(SOURCE, 3), (AnonymityCondition.SUCCESSOR, 2)])
    asked = one.say(CrowdWish(SubscriptionGroup(F, both, "wait"), both, (ANN, BOB), None, "edge"))
    assert [ask.question.sources for ask in asked if isinstance(ask, Ask)] == [(), ()]


def test_a_yes_that_bridges_stays_until_the_other_is_there() -> None:
    one = Asking()
    four = wish(ANN, BOB)._replace(demands=frozenset([(SOURCE, 4)]))
    (ask,) = one.say(four)
    one.hear(ask, True)
    (less,) = one.say(wish(ANN, BOB))
    assert isinstance(less, Ask)
    assert less.question.k == 3
    assert one.says(ANN, BOB)
    one.hear(less, True)
    assert one.say(wish(ANN, BOB)) == [Unwatch(ask.number)]
    assert one.says(ANN, BOB)


def test_what_follows_from_another_answer_is_not_asked() -> None:
    one = Asking()
    narrow, wide = (
        wish(ANN, given=given, condition=AnonymityCondition.SUCCESSOR)
        for given in (wanted((2, 3)), wanted((0, 9)))
    )
    (ask,) = one.say(narrow)
    one.hear(ask, True)
    assert one.say(narrow, wide) == []
    assert one.watching.says(F, AnonymityCondition.SUCCESSOR, 3, {ANN}, NOW)


def test_as_many_are_watched_as_the_service_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_WATCHED", 2)
    one = Asking()
    wishes = [wish(ANN, given=wanted((0, n))) for n in range(4)]
    assert len(one.say(*wishes)) == 2
    assert one.say(wish(ANN, k=MAX_CROWD + 1)) != []
    assert len(one.watching) == 0


def test_the_service_counts_together_only_who_was_told_together() -> None:
    """Whoever has heard yes does not rest on somebody who has not."""
    one = service(settle=30)
    a, b = Asking(), Asking()
    b.watching.use(between(tree(), KEYS["b"], KEYS["root"]) or ())
    b.stating._seed = SEEDS["b"]
    b._drawn = 1000
    asked = {}
    for name, each in (("a", a), ("b", b)):
        (ask,) = each.say(wish(ANN, k=2))
        assert isinstance(ask, Ask)
        asked[name] = ask
        one.watch(KEYS[name], ask.number, ask.question, NOW + (20 if name == "b" else 0))
        assert one.advance(NOW + (20 if name == "b" else 0)) == []
    assert one.advance(NOW + 30) == [], "b came later, and both are told at once"
    assert {news.asker for news in one.advance(NOW + 50)} == {KEYS["a"], KEYS["b"]}
    one.leave(KEYS["b"])
    one.watch(KEYS["b"], 9, asked["b"].question, NOW + 51)
    assert [news.asker for news in one.advance(NOW + 51)] == [KEYS["a"]], "b's yes is none any more"
