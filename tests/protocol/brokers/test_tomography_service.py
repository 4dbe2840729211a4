"""The service: what it answers, refuses and tells watchers; and what brokers state to it, or do not."""

from __future__ import annotations

import pytest
from tomography_examples import (
    CAP,
    EPOCH,
    KEYS,
    NOW,
    SEEDS,
    SERVICE,
    WHOLE,
    key_of,
    names,
    question,
    service,
    statement,
    tree,
    wanted,
)

from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.clear_words import outside
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.tomography import joint_judgement, largest_k
from hushcast_protocol.brokers.tomography import tomography_service as limits
from hushcast_protocol.brokers.tomography.broker_statements import BogusSource, BrokerStatements
from hushcast_protocol.brokers.tomography.questions import TomographyQuestion, read_answer
from hushcast_protocol.brokers.tomography.statements import Statement, read_statement
from hushcast_protocol.brokers.tomography.tomography_service import TomographyService
from hushcast_protocol.brokers.tomography.tree_paths import between

F, G = wanted((0, 9)), wanted((2, 5))
SOURCE = AnonymityCondition.SOURCE


def told(one: TomographyService, *rows: tuple[str, int, Filter, tuple[bytes, ...]], now: float = NOW) -> None:
    for broker, number, given, sources in rows:
        one.hear(KEYS[broker], statement(broker, number, given, sources), now)


def says(one: TomographyService, of: TomographyQuestion, asker: str = "a", now: float = NOW) -> bool:
    return read_answer(one.ask(KEYS[asker], of, now), SERVICE.public(), of, now).is_anonymous


def test_ways_in_the_tree() -> None:
    a, c, root, d, e, b = map(key_of, ("a", "c", "root", "d", "e", "b"))
    assert between(tree(), a, root) == (a, c, root)
    assert between(tree(), a, b) == (a, c, b)
    assert between(tree(), root, e) == (root, d, e)
    assert between(tree(), a, e) == (a, c, root, d, e)
    assert between(tree(), a, a) is between(tree(), a, bytes(32)) is None


def test_a_filter_is_anonymous_where_it_is_so_at_every_broker_it_would_be_shown_to() -> None:
    one = service()
    told(one, ("b", 1, F, names(11, 12)), ("c", 1, F, ()))
    # a's one comes to c, where b's two are; with these it would come to the root.
    assert says(one, question(F, 3, SOURCE, sources=names(1)))
    assert not says(one, question(F, 4, SOURCE, sources=names(1)))
    near, far = question(WHOLE, 2, target=KEYS["c"]), question(WHOLE, 2)
    assert says(one, near)
    assert not says(one, far)  # what stands below it at c has not come to the root
    told(one, ("root", 1, F, ()))
    assert says(one, far)
    # What c would show comes with those that are behind it at c, whoever asks.
    assert says(one, question(F, 2, SOURCE, origin=KEYS["c"]), "c")


def test_who_is_behind_a_filter_comes_along_to_where_something_wider_covers_it_now() -> None:
    one = service()
    told(
        one,
        ("a", 1, F, names(1, 2, 3)),
        ("a", 2, WHOLE, names(4)),
        ("c", 1, WHOLE, ()),
        ("root", 1, WHOLE, ()),
    )
    # a shows only what covers F, and would show F with its three as soon as that goes.
    assert says(one, question(F, 3, SOURCE))
    assert says(one, question(F, 3, SOURCE, is_real=True))
    assert not says(one, question(F, 4, SOURCE))


def test_spread_asks_for_sources_of_different_edge_brokers() -> None:
    one = service()
    told(one, ("c", 1, F, ()), ("c", 2, G, ()), ("b", 1, G, names(11, 12, 13, 14)))
    assert says(one, question(F, 4, target=KEYS["c"]))
    assert not says(one, question(F, 4, target=KEYS["c"], spread=2))
    told(one, ("a", 1, G, names(1)))
    assert says(one, question(F, 4, target=KEYS["c"], spread=2))
    assert says(one, question(F, 5, target=KEYS["c"], spread=2))


def test_bogus_sources_count_unless_they_are_not_to() -> None:
    one = service()
    told(one, ("c", 1, F, ()))
    made = statement("b", 1, F, names(11, 12, 13), bogus=2)
    one.hear(KEYS["b"], made, NOW)
    assert one.gathered.bogus == 2
    near = {"target": KEYS["c"], "sources": names(1)}
    assert says(one, question(F, 4, SOURCE, **near))
    assert not says(one, question(F, 4, SOURCE, is_real=True, **near))
    assert says(one, question(F, 2, SOURCE, is_real=True, **near))
    one.hear(KEYS["b"], statement("b", 2, F, is_held=False), NOW)
    assert one.gathered.bogus == 0


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"target": bytes(32)}, "no-way"),
        ({"target": KEYS["a"]}, "no-way"),
        ({"k": 3 * CAP + 1}, "k"),
        ({"spread": 4}, "k"),
        ({"origin": KEYS["b"], "sources": names(1)}, "not-origin"),
        ({"sources": names(*range(CAP + 1))}, "cap"),
    ],
)
def test_questions_that_cannot_be_asked_are_refused(fields: dict[str, object], reason: str) -> None:
    given = {"k": 3, **fields}
    with pytest.raises(Refusal) as refusal:
        service().ask(KEYS["a"], question(F, **given), NOW)  # type: ignore[arg-type]
    assert refusal.value.reason == reason


def test_a_broker_that_vouches_for_nobody_names_no_sources_and_filters_are_in_form() -> None:
    with pytest.raises(Refusal, match="not-edge"):
        service().ask(KEYS["c"], question(F, 2, origin=KEYS["c"], sources=names(1)), NOW)
    with pytest.raises(Refusal, match="form"):
        service().ask(KEYS["a"], question(wanted((9, 3)), 2), NOW)


def test_answers_are_over_with_what_they_rest_on_and_soon_after_a_larger_k() -> None:
    one = service(valid=300)
    told(one, ("c", 1, F, ()))
    of = question(F, 2, SOURCE, sources=names(1, 2), target=KEYS["c"])

    def until(now: float, of: TomographyQuestion = of) -> float:
        return read_answer(one.ask(KEYS["a"], of, now), SERVICE.public(), of, now).until - now

    assert until(NOW) == 300
    assert until(NOW + 500) == 100
    larger = question(F, largest_k.LEAST_K + 1, SOURCE, target=KEYS["c"])
    assert until(NOW, larger) == limits.RESTATED_WITHIN
    assert until(NOW, larger) == 300
    assert one.largest.at(NOW) == largest_k.LEAST_K + 1
    assert one.largest.at(NOW + 2 * largest_k.KEPT_FOR) == largest_k.LEAST_K


def test_watchers_hear_at_once_that_a_filter_has_sunk_and_later_that_it_has_risen() -> None:
    one = service(valid=1000, settle=30)
    told(one, ("c", 1, F, ()), ("b", 1, F, names(11)))
    of = question(F, 2, SOURCE, sources=names(1), target=KEYS["c"])
    assert read_answer(one.watch(KEYS["a"], 7, of, NOW), SERVICE.public(), of, NOW).is_anonymous
    assert one.advance(NOW) == []
    one.hear(KEYS["b"], statement("b", 2, F, is_held=False), NOW + 1)
    assert one.deadline() == 0
    (fell,) = one.advance(NOW + 1)
    assert (fell.asker, fell.number) == (KEYS["a"], 7)
    assert not read_answer(fell.answer, SERVICE.public(), of, NOW + 1).is_anonymous
    told(one, ("b", 3, F, names(12)))
    assert one.advance(NOW + 2) == []
    assert one.deadline() == NOW + 32
    one.hear(KEYS["b"], statement("b", 4, F, is_held=False), NOW + 3)
    assert one.advance(NOW + 3) == []  # it was anonymous for a moment only
    told(one, ("b", 5, F, names(12)))
    assert one.advance(NOW + 4) == []
    assert one.advance(NOW + 33) == []
    (rose,) = one.advance(NOW + 34)
    assert read_answer(rose.answer, SERVICE.public(), of, NOW + 34).is_anonymous


def test_watchers_hear_before_an_answer_would_be_old_and_when_statements_end() -> None:
    one = service(valid=100, settle=0)
    told(one, ("c", 1, F, ()), ("b", 1, F, names(11)))
    of = question(F, 2, SOURCE, sources=names(1), target=KEYS["c"])
    one.watch(KEYS["a"], 1, of, NOW)
    assert one.advance(NOW) == []
    assert one.deadline() == NOW + 100 - limits.RENEWED_AHEAD
    (renewed,) = one.advance(NOW + 70)
    assert read_answer(renewed.answer, SERVICE.public(), of, NOW + 100).is_anonymous
    (ended,) = one.advance(NOW + 600)
    assert not read_answer(ended.answer, SERVICE.public(), of, NOW + 600).is_anonymous


def test_a_liar_that_is_found_out_sinks_what_rests_on_it() -> None:
    one = service()
    told(one, ("c", 1, F, ()), ("b", 1, F, names(11)))
    one.watch(KEYS["a"], 1, question(F, 2, SOURCE, sources=names(1), target=KEYS["c"]), NOW)
    with pytest.raises(Refusal, match="contradicted"):
        one.hear(KEYS["b"], statement("b", 1, F, names(11, 12)), NOW)
    assert len(one.advance(NOW)) == 1


def test_watches_are_bounded_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_WATCHES_EACH", 1)
    one = service()
    of = question(F, 2)
    one.watch(KEYS["a"], 1, of, NOW)
    one.watch(KEYS["a"], 1, of, NOW)  # in place of the first
    with pytest.raises(Refusal, match="quota"):
        one.watch(KEYS["a"], 2, of, NOW)
    monkeypatch.setattr(limits, "MAX_WATCHES", 1)
    with pytest.raises(Refusal, match="quota"):
        one.watch(KEYS["b"], 1, question(F, 2, origin=KEYS["b"]), NOW)
    one.unwatch(KEYS["a"], 9)
    one.unwatch(KEYS["a"], 1)
    assert one.watches == 0
    one.watch(KEYS["a"], 3, of, NOW)
    one.leave(KEYS["a"])
    assert one.watches == 0
    assert one.deadline() == float("inf")


class Edge:
    """Edge broker a, and what it states."""

    def __init__(self, cap: int = CAP) -> None:
        self._drawn = 0
        self.stating = BrokerStatements(SEEDS["a"], self._draw, 0, cap=cap, life=600)

    def _draw(self, size: int) -> bytes:
        self._drawn += 1
        return self._drawn.to_bytes(size, "big")

    def due(self, now: float = NOW, epoch: int = EPOCH) -> list[Statement]:
        signed: list[Signed] = self.stating.due(epoch, now)
        return [read_statement(one, KEYS["a"]) for one in signed]


def test_a_broker_states_what_is_new_what_changes_and_what_ends() -> None:
    edge = Edge()
    edge.stating.hold(F, ["x", "y"])
    edge.stating.hold(G, ["y"])
    first, second = edge.due()
    assert (outside(first.filter), outside(second.filter)) == (F, G)
    assert second.sources[0] in first.sources  # one client is one source
    assert (first.number, second.number) == (1, 2)
    assert edge.due() == []
    edge.stating.drop(G)
    edge.stating.hold(F, ["x"])
    gone, fewer = edge.due()
    assert (outside(gone.filter), gone.is_held, gone.sources) == (G, False, ())
    assert fewer.sources == (first.sources[0],)
    assert edge.stating.deadline() == NOW + 300
    assert edge.due(NOW + 299) == []
    assert len(edge.due(NOW + 300)) == 1


def test_all_is_stated_again_to_a_service_that_may_have_forgotten_it() -> None:
    world = Edge()
    world.stating.hold(F, ["ann"])
    world.stating.hold(G, ["bob"])
    first, _ = world.due()
    world.stating.drop(G)
    assert [one.is_held for one in world.due(NOW + 1)] == [False]
    assert not world.due(NOW + 2)
    world.stating.again()
    back, again = world.due(NOW + 3)
    assert (outside(back.filter), back.is_held) == (G, False)
    assert (outside(again.filter), again.sources, again.number) == (F, first.sources, first.number + 4)
    world.stating.again()
    world.stating.hold(G, ["bob"])
    assert [one.is_held for one in world.due(NOW + 4)] == [True, True]
    world.stating.drop(F)
    world.due(NOW + 5)
    world.due(NOW + 700)
    world.stating.again()
    assert [outside(one.filter) for one in world.due(NOW + 701)] == [G], "what was over need not be said"


def test_a_broker_is_silent_above_the_largest_k() -> None:
    edge = Edge()
    edge.stating.largest_k = 3
    edge.stating.hold(F, range(3))
    assert len(edge.due()[0].sources) == 3
    edge.stating.hold(F, range(6))
    assert edge.due() == []
    edge.stating.hold(F, [1, 2, 3, 4])
    (fewer,) = edge.due()  # of those stated one has left
    assert len(fewer.sources) == 3
    edge.stating.largest_k = 4
    (more,) = edge.due()
    assert set(more.sources) > set(fewer.sources)


def test_a_broker_vouches_up_to_its_cap_and_makes_room_when_clients_leave() -> None:
    edge = Edge(cap=2)
    edge.stating.hold(F, ["x", "y", "z"])
    edge.stating.hold(G, ["z"])
    assert [len(one.sources) for one in edge.due()] == [2, 0]
    edge.stating.hold(F, ["y", "z"])
    edge.due()
    edge.due()
    assert len(edge.stating.names(G, ["z"])) == 1


def test_a_new_epoch_has_new_pseudonyms_and_bogus_sources_come_last() -> None:
    edge = Edge()
    edge.stating.hold(F, [BogusSource(1), "x", BogusSource(2)])
    (before,) = edge.due()
    assert (len(before.sources), before.bogus) == (3, 2)
    assert edge.stating.names(F, [BogusSource(1), "x"]) == before.sources[:1]
    (after,) = edge.due(epoch=EPOCH + 1)
    assert after.epoch == EPOCH + 1
    assert not set(before.sources) & set(after.sources)


def test_what_a_broker_states_is_what_the_service_counts() -> None:
    one, edge = service(), Edge()
    edge.stating.hold(G, ["x", "y", "z"])
    told(one, ("c", 1, G, ()))
    for signed in edge.stating.due(EPOCH, NOW):
        one.hear(KEYS["a"], signed, NOW)
    assert says(one, question(WHOLE, 3, origin=KEYS["a"], target=KEYS["c"]))
    assert not says(one, question(WHOLE, 4, origin=KEYS["a"], target=KEYS["c"]))


def test_those_who_watch_with_sources_are_counted_together() -> None:
    """Nobody may be the first; all may at once."""
    one = service(valid=1000, settle=0)
    near = {"target": KEYS["c"]}
    for number, (name, source) in enumerate([("a", 1), ("b", 2)]):
        of = question(F, 2, SOURCE, origin=KEYS[name], sources=names(source), **near)
        signed = one.watch(KEYS[name], number, of, NOW)
        assert not read_answer(signed, SERVICE.public(), of, NOW).is_anonymous
    far = question(F, 3, SOURCE, origin=KEYS["a"], sources=names(1), **near)
    one.watch(KEYS["a"], 9, far, NOW)
    told(one, ("d", 1, F, ()))  # anything about the topic
    assert {(item.asker, item.number) for item in one.advance(NOW)} == {(KEYS["a"], 0), (KEYS["b"], 1)}
    assert not says(one, question(F, 2, SOURCE, sources=names(1), **near))  # alone, as it stands now
    one.unwatch(KEYS["b"], 1)
    told(one, ("d", 2, F, ()))
    (sunk,) = one.advance(NOW)
    assert (sunk.asker, sunk.number) == (KEYS["a"], 0)


@pytest.mark.parametrize("condition", [one for one in AnonymityCondition if one is not SOURCE])
def test_under_definitions_1_to_4_nothing_strictly_shown_stands_by_itself(
    condition: AnonymityCondition,
) -> None:
    """Of what is shown, one covers no other and one is covered by none: together is as good as alone."""
    one = service(valid=1000, settle=0)
    for number, given in enumerate((WHOLE, F, G, wanted((3, 3)))):
        of = question(given, 1, condition, sources=names(number), target=KEYS["c"])
        one.watch(KEYS["a"], number, of, NOW)
    told(one, ("d", 1, F, ()))
    assert one.advance(NOW) == []


def test_a_filter_that_stands_for_nobody_is_let_through() -> None:
    one = service()
    one.hear(KEYS["a"], statement("a", 1, G, names(1, 2, 3), bogus=3), NOW)
    assert says(one, question(G, 3, origin=KEYS["a"], target=KEYS["c"]))
    told(one, ("c", 1, G, ()))
    assert says(one, question(F, 3, target=KEYS["c"], sources=names(4)))


def test_a_newer_tree_has_other_ways() -> None:
    one = service(valid=1000, settle=0)
    told(one, ("c", 1, F, ()), ("b", 1, F, names(11)))
    one.watch(KEYS["a"], 1, question(F, 2, SOURCE, sources=names(1), target=KEYS["c"]), NOW)
    assert one.advance(NOW) == []
    one.use(tree(c="root", d="root", a="d", b="c"))
    (sunk,) = one.advance(NOW)  # a's way to c leads by the root now, which holds nothing
    assert sunk.number == 1
    one.use(tree(c="root", d="root", b="c"))
    assert one.advance(NOW) == []
    assert one.deadline() < float("inf")


def test_pseudonyms_of_an_epoch_gone_by_count_no_more() -> None:
    """A client that is stated under its new pseudonym would be two."""
    one = service(valid=5000, settle=0)
    of = question(F, 2, SOURCE, sources=names(1, 2), target=KEYS["c"])
    assert read_answer(one.watch(KEYS["a"], 1, of, NOW), SERVICE.public(), of, NOW).is_anonymous
    told(one, ("d", 1, F, ()))
    assert one.advance(NOW) == []
    later = NOW + 3600
    made = statement("a", 1, F, names(3), epoch=EPOCH + 1, until=int(later) + 600)
    one.hear(KEYS["a"], made, later)
    (sunk,) = one.advance(later)  # one client, whose old name is not counted beside the new one
    assert not read_answer(sunk.answer, SERVICE.public(), of, later).is_anonymous


def test_long_chains_are_judged_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rests on the one below it, and the last on nothing: each turn takes one away."""
    one = service(valid=1000, settle=0)
    for number in range(4):
        of = question(wanted((0, number)), 1, sources=names(number), target=KEYS["c"])
        one.watch(KEYS["a"], number, of, NOW)
    monkeypatch.setattr(joint_judgement, "MAX_TURNS", 2)
    told(one, ("d", 1, F, ()))
    assert one.advance(NOW) == []
    assert not len(one.gathered.crowd(KEYS["c"]).poset)  # nothing that was only assumed is left
