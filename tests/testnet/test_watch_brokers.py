"""What the page makes of the traces of a network of brokers: messages, their ways, what each saw of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hushcast_protocol.brokers.privacy import Privacy
from hushcast_testnet.demonstrations.story import story
from hushcast_testnet.simulations.overlay_simulation import simulate
from hushcast_testnet.simulations.scenario import Scenario
from hushcast_testnet.watch.brokers_picture import BrokersPicture
from hushcast_testnet.watch.follower import Follower
from hushcast_testnet.watch.pictures import picture_of

CLIENTS = [f"client-{number}" for number in range(6)]


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("watch") / "traces"
    simulate(Scenario(6, 6, 2, carrier="brokers", traces=directory))
    return directory


@pytest.fixture
def picture(traces: Path) -> BrokersPicture:
    made = picture_of("brokers")
    assert isinstance(made, BrokersPicture)
    follower = Follower(traces)
    while records := list(follower.new()):
        for name, record in records:
            made.take(name, record)
    return made


@pytest.mark.slow
def test_the_tree_is_drawn_with_daemons_below_their_edge_brokers(picture: BrokersPicture) -> None:
    drawing = picture.tree_drawing("", CLIENTS)
    assert drawing is not None
    assert [[box.id for box in level] for level in drawing.levels] == [
        ["root"],
        ["inner-1", "inner-2"],
        ["edge-1", "edge-2", "edge-3"],
        CLIENTS,
    ]
    below = {(arrow.start, arrow.end) for arrow in drawing.arrows}
    assert {("inner-2", "edge-2"), ("edge-1", "client-3"), ("edge-3", "client-5")} <= below


def test_messages_move_down_the_tree(picture: BrokersPicture) -> None:
    moves = [(move["from"], move["to"]) for move in picture.moves()]
    assert (
        moves.count(("", "root"))
        == moves.count(("root", "inner-1"))
        == moves.count(("inner-1", "edge-3"))
        == 2
    )
    assert moves.count(("edge-3", "client-5")) == 2
    assert len(moves) == 2 * (1 + 2 + 3 + 6)
    assert picture.load()["edge-1"] == (8, 0)


def test_each_broker_says_what_it_saw_and_none_a_topic_or_a_subscriber(picture: BrokersPicture) -> None:
    way = picture.way("")
    assert way is not None
    between = [one for one in way["stations"] if one["kind"] in ("origin", "relay", "top")]
    assert [one["kind"] for one in between] == ["origin", "relay", "relay", "top", "top", "top"]
    told = [text for one in between for text in one["saw"]]
    assert not any(word in text for text in told for word in ("topic 0", *CLIENTS))
    root, edge = between[0], next(one for one in between if one["name"] == "edge-1")
    assert "It met filters that inner-1 and inner-2 showed: it sent it on there, once each." in root["saw"]
    assert "It came from inner-1." in edge["saw"]
    assert any("4 clients" in text for text in edge["saw"])


def test_a_story_is_told_of_brokers(traces: Path) -> None:
    lines = list(story(traces, "brokers"))
    assert "6 brokers passed it on" in lines[0]
    told = [line.split(" · ")[0].split("-")[0].strip() for line in lines if " · " in line]
    assert told == ["root", "inner", "edge"]


@pytest.mark.slow
def test_in_a_community_words_are_sealed(tmp_path: Path) -> None:
    simulate(Scenario(6, 6, 2, carrier="brokers", traces=tmp_path / "t", privacy=Privacy("community")))
    assert any("sealed to a community" in line for line in story(tmp_path / "t", "brokers"))


@pytest.mark.slow
def test_under_layers_the_way_is_one_though_a_message_has_another_id_on_it(tmp_path: Path) -> None:
    simulate(Scenario(6, 6, 2, carrier="brokers", traces=tmp_path / "t", privacy=Privacy("full")))
    lines = list(story(tmp_path / "t", "brokers"))
    assert "passed it on; client-" in lines[0]
    text = "\n".join(lines)
    assert "labels: names of items that it showed above" in text or "1 label: names of items" in text
    assert "It met items under layers that inner-" in text
    made = picture_of("brokers")
    follower = Follower(tmp_path / "t")
    while records := list(follower.new()):
        for name, record in records:
            made.take(name, record)
    drawing = made.tree_drawing("", CLIENTS)
    assert drawing is not None
    ends = {arrow.end for arrow in drawing.arrows}
    assert ends >= set(CLIENTS), "each below its edge broker"
