"""What colluders read under layers: the published scheme as a model of it predicts, and what they cannot."""

from itertools import combinations
from random import Random

import pytest

from benchmarks.brokers.baseline_trials import played_baselines
from benchmarks.brokers.baselines import hashed, read_hashes, read_sealed, sealed
from benchmarks.brokers.layered_tables import by_shares
from hushcast_analytics.brokers.broker_neighbourhood import CLIENT, DAY, BrokerNeighbourhood, NeighbourNode
from hushcast_analytics.brokers.colluder_holdings import taken_off
from hushcast_analytics.brokers.collusion_trials import Cell, played
from hushcast_analytics.brokers.dictionary_attack import Dictionary, named, readings
from hushcast_analytics.brokers.layer_removal import broker_and_child, by_either, compared, consecutive
from hushcast_protocol.base.crypto.secrets import AgreementKey
from hushcast_protocol.brokers.full.aggregation import asking, check_asked
from hushcast_protocol.brokers.full.group_action import PADS
from hushcast_protocol.brokers.full.layers import own_layers
from hushcast_protocol.brokers.privacy import Privacy

WORD = b"what the client asks for"


def privacy_of(layers, profile="paper", *, aggregates=True):
    return Privacy("full", layers, profile, aggregates)


def neighbourhood(privacy, fan_out=4):
    def words_of(node):
        return [WORD] if node == CLIENT else [b"another word %d" % node.beside]

    return BrokerNeighbourhood(privacy, fan_out, words_of, 1)


def opened(place, colluders, attack=by_either):
    """The client's word, where colluders get at it at its own broker."""
    held = place.held(colluders, 1)
    found = [attack(held, table, table.items[0]) for table in held.tables]
    return found == [place.privacy.action.element(WORD)]


def model(share, fan_out, layers, *, aggregates):
    """The independent model: all m ancestors collude, or the parent and one of its other children do."""
    beside = 1 - (1 - share) ** (fan_out - 1) if aggregates else 0.0
    return share * (beside + (1 - beside) * share ** (layers - 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fan_out", "layers", "aggregates"), [(8, 2, True), (8, 2, False), (32, 2, True), (8, 3, True)]
)
def test_the_published_scheme_breaks_as_the_model_predicts(fan_out, layers, aggregates):
    cell = Cell(privacy_of(layers, aggregates=aggregates), fan_out, 0.1)
    rows = {row["attack"]: row for row in played(cell, 600, 1)}
    either = rows["either"]
    expected = model(0.1, fan_out, layers, aggregates=aggregates)
    assert either["accuracy_low"] <= expected <= either["accuracy_high"]
    assert rows["consecutive"]["accuracy"] <= either["accuracy"] <= rows["anywhere"]["accuracy"]
    assert rows["broker-and-child"]["accuracy"] == (either["accuracy"] if aggregates else 0)
    assert not any(row["unguessable"] for row in rows.values())


@pytest.mark.slow
def test_hardened_nothing_is_read_that_no_dictionary_has():
    rows = {row["attack"]: row for row in played(Cell(privacy_of(2, "hardened"), 8, 0.3), 150, 1)}
    assert not any(row["unguessable"] for row in rows.values())
    assert rows["either"]["accuracy"] > 0  # a token is opened all the same, and named if it can be guessed
    assert rows["pairs"]["accuracy"] == rows["table"]["accuracy"] == 0


@pytest.mark.parametrize("profile", ["paper", "hardened"])
@pytest.mark.parametrize("layers", [2, 3, 4])
def test_it_takes_all_of_the_nearest_ancestors(profile, layers):
    place = neighbourhood(privacy_of(layers, profile, aggregates=False))
    ancestors = place.way[:layers]
    assert opened(place, set(ancestors), consecutive)
    for some in combinations(ancestors, layers - 1):
        assert not opened(place, {*some, *place.way[layers:]})
        assert not opened(place, {*some, *place.beside(1)})  # nothing is given to compare children by


@pytest.mark.parametrize("profile", ["paper", "hardened"])
@pytest.mark.parametrize("layers", [2, 3, 4])
def test_a_broker_and_any_child_have_the_others_whatever_m_is(profile, layers):
    place = neighbourhood(privacy_of(layers, profile))
    broker, child = place.way[0], NeighbourNode(0, 2)
    assert opened(place, {broker, child}, broker_and_child)
    assert not opened(place, {broker})
    assert not opened(place, {child, *place.way[1:layers]})
    made_up = NeighbourNode(0, place.fan_out)
    assert opened(place, {broker, made_up}, broker_and_child)


@pytest.mark.parametrize("profile", ["paper", "hardened"])
@pytest.mark.parametrize("layers", [2, 3, 4])
def test_without_aggregation_the_mth_ancestor_and_a_client_read_what_they_guess(profile, layers):
    place = neighbourhood(privacy_of(layers, profile, aggregates=False))
    for broker in place.way[:layers]:
        held = place.beside_chosen(broker, [b"another word of theirs", WORD])
        (table,) = held.tables
        wanted, other, same = (taken_off(held, table, item) for item in table.items)
        assert wanted != other
        # Nearer to the client each has a layer of its own on it still; as published each item has its own.
        assert (wanted == same) is (broker == place.way[layers - 1] and profile == "hardened")


@pytest.mark.slow
def test_as_many_words_are_chosen_rightly_as_ancestors_collude():
    rows = played(Cell(privacy_of(3, "hardened", aggregates=False), 8, 0.2), 150, 1)
    chosen = {row["attack"]: row for row in rows}["chosen-word"]
    assert chosen["accuracy_low"] <= 0.2 <= chosen["accuracy_high"]
    assert not chosen["unguessable"]


def test_those_above_cannot_tell_a_child_that_a_broker_made_up():
    keys = [AgreementKey(bytes([number]) * 32).public() for number in range(1, 6)]
    asker, above, made_up = keys[0], keys[1:4], keys[4]
    path = own_layers(made_up, above, 2)
    ask = asking(PADS, asker, 1, DAY, path)
    assert not check_asked(ask, above, 3, above[0], above.__contains__)
    assert check_asked(ask, above, 3, above[1], above.__contains__)


def test_brokers_further_up_know_the_client_by_a_key_and_read_it_alike():
    place = neighbourhood(privacy_of(3))
    above = place.way[1]
    held = place.held({above, NeighbourNode(1, 1)}, 3)
    (table,) = held.tables
    assert place.way[0] not in {above}  # the client's own broker is honest
    assert broker_and_child(held, table, table.items[0]) == PADS.element(WORD)
    assert {layer.owner for layer in table.items[0].layers} & {
        layer.owner for layer in place.held({place.way[0]}, 1).tables[0].items[0].layers
    }


def test_one_pad_gives_both_words_and_three_say_which_is_which():
    random = Random(1)
    words = {random.randbytes(32): str(number) for number in range(2000)}
    dictionary, pad = Dictionary(words), random.randbytes(32)
    one, two, three = random.sample(sorted(words), 3)
    seen = [PADS.wrap(PADS.received(pad), word) for word in (one, two, three)]
    both = readings(seen[:2], dictionary)
    assert {frozenset(reading) for reading in both} == {frozenset((words[one], words[two]))}
    assert len(both) == 2
    assert readings(seen, dictionary) == [(words[one], words[two], words[three])]
    unknown = PADS.wrap(PADS.received(pad), random.randbytes(32))
    assert readings([*seen, unknown], dictionary) == [(words[one], words[two], words[three], None)]
    assert readings([seen[0], unknown], dictionary) == []


def test_factors_bring_all_children_under_one_pad():
    place = neighbourhood(privacy_of(2))
    held = place.held({place.way[0]}, 1, place.beside(1))
    (table,) = held.tables
    words = [WORD, *(b"another word %d" % number for number in (1, 2, 3))]
    dictionary = Dictionary({PADS.element(word): word.decode() for word in words})
    (reading,) = readings([compared(held, table, item) for item in table.items], dictionary)
    assert reading == tuple(word.decode() for word in words)


def test_a_hash_is_named_by_a_dictionary():
    assert named([b"1" * 16, b"3" * 16], Dictionary({b"1" * 16: "one", b"2" * 16: "two"})) == {"one"}


def test_rows_are_named_by_how_much_they_are_sent():
    shares = {"often": 0.7, "seldom": 0.1, "all": 1.0, "never": 0.0}
    counts = {"x": 66, "y": 12, "z": 100, "none": 0}
    assert by_shares(counts, shares, 100) == {"x": "often", "y": "seldom", "z": "all", "none": "never"}


def test_a_dictionary_reads_hashes_and_a_member_its_group():
    words = {b"word %d" % number: f"topic {number}" for number in range(50)}
    shown = [hashed(b"word 7"), hashed(b"a private word")]
    assert read_hashes(shown, words.items()) == {"topic 7"}  # whoever sees it: it takes no key
    ours, theirs = bytes(32), bytes([1]) * 32
    boxes = [sealed(b"word 7", ours), sealed(b"word 8", theirs)]
    assert read_sealed(boxes, [ours]) == {b"word 7"}
    assert read_sealed(boxes, []) == set()
    assert sealed(b"word 7", ours) == boxes[0]  # a member finds equal words, as §IV-B has it
    assert read_hashes(boxes, words.items()) == set()


def test_colluders_read_hashes_and_what_their_own_group_seals():
    hashes, outside, member = played_baselines(0.5, 400, 1)
    assert hashes["accuracy_low"] < 0.5 < hashes["accuracy_high"]
    assert outside["accuracy"] == 0
    assert member["accuracy"] == hashes["accuracy"], "of fifty others one colludes each time"
    assert all(row["unguessable"] == 0 for row in (hashes, outside, member))
