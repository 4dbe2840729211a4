"""Authorities among faulty ones, epoch after epoch: the same seed, the same outcome; one head each."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from hushcast_protocol.authorities.heads import CertifiedHead
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.roster import Network
from hushcast_protocol.shards.shard_requests import (
    AskCandidates,
    AskLeaf,
    AskPiece,
    AskSlice,
    PartAnswer,
    ShardUnavailable,
    ShownCandidates,
    ShownLeaf,
    ShownPiece,
    ShownSlice,
)
from hushcast_testnet.authorities.authorities_simulation import (
    AuthoritiesOutcome,
    AuthoritiesScenario,
    simulate,
)
from hushcast_testnet.authorities.faulty_answers import FaultyAnswer, FaultyAnswers
from hushcast_testnet.authorities.liars import main


@pytest.mark.slow
def test_one_head_each_with_every_combination_of_two_faulty() -> None:
    """All 55 once; 10,000 epochs take some minutes, and are in docs/authorities.md."""
    told: list[str] = []
    plan = AuthoritiesScenario(authorities=5, quorum=3, faulty=2, epochs=55, seed=7)
    outcome = simulate(plan, told.append)
    assert (outcome.epochs, outcome.heads, outcome.forks, outcome.without) == (55, 55, 0, 0)
    assert outcome.wrong == 0
    assert outcome.accused >= outcome.named > 0
    assert told[-1].startswith("50 of 55 epochs: 50 with one head")


@pytest.mark.slow
def test_shards_are_the_same_at_all_over_days_with_liars() -> None:
    """Forty relays in shards of five; the first day's, and three more that beacons draw."""
    outcome = simulate(AuthoritiesScenario(5, 3, faulty=2, epochs=80, seed=2, relays=40, shard_size=6))
    assert (outcome.heads, outcome.forks, outcome.wrong) == (80, 0, 0)
    assert outcome.cut == 80
    whole = simulate(AuthoritiesScenario(3, 2, faulty=1, epochs=5, relays=40))
    assert (whole.heads, whole.cut) == (5, 0)


@pytest.mark.slow
def test_late_messages_fork_no_seven_of_five() -> None:
    outcome = simulate(AuthoritiesScenario(authorities=7, quorum=5, faulty=2, epochs=10, late=0.2))
    assert outcome.forks == outcome.wrong == 0
    assert outcome.heads + outcome.without == 10


@pytest.mark.slow
def test_forks_of_five_of_three_are_proven() -> None:
    """Nearly a third of all messages late, and two who sign anything: each fork is proven at once."""
    outcome = simulate(AuthoritiesScenario(authorities=5, quorum=3, faulty=2, epochs=24, late=0.3, seed=3))
    assert outcome.forks > 0
    assert outcome.forks - outcome.proven in (0, 1)  # the last epoch's has no epoch after it
    assert outcome.wrong == 0


def test_one_authority_and_the_same_seed() -> None:
    plan = AuthoritiesScenario(authorities=1, quorum=1, faulty=0, epochs=30)
    assert simulate(plan) == AuthoritiesOutcome(epochs=30, heads=30)
    plan = AuthoritiesScenario(authorities=3, quorum=2, faulty=1, epochs=10, late=0.1)
    assert simulate(plan) == simulate(plan)


def test_liars_need_a_directory_that_is_one_of_several_and_stands_still(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    config = tmp_path / "directory.toml"
    config.write_text(f'state = "{tmp_path / "state"}"\ntransport = "tcp"\n[network]\nname = "n"\n')
    with pytest.raises(SystemExit, match="alone"):
        main([str(config)])
    with pytest.raises(SystemExit, match="give the configurations"):
        main([])


def test_liars_show_no_part_of_shards_that_was_asked_for() -> None:
    """They are silent, show nothing, or another part than was asked for."""
    asked = (AskLeaf(7, 1, 2), AskSlice(1, 2), AskPiece(1, 0), AskCandidates(1, 2))
    honest: dict[object, PartAnswer] = {
        AskLeaf(7, 1, 3): ShownLeaf(b"leaf 3", ()),
        AskSlice(1, 3): ShownSlice(b"slice 3"),
        AskPiece(1, 1): ShownPiece(b"piece 1", ()),
        AskCandidates(1, 3): ShownCandidates(b"list 3", ()),
    }
    network = Network("liars", "hardened", 60)
    desk = FaultyAnswers(network, honest.__getitem__, lambda epoch: CertifiedHead(b"", ()), Random(1))
    given = [desk.answer(Seed(bytes(32)), request) for request in asked * 20]
    assert {None, ShardUnavailable(), *honest.values()} == set(given)
    assert sum(desk.given.values()) == 80
    assert desk.given.keys() == {FaultyAnswer.SILENT, FaultyAnswer.LACKING, FaultyAnswer.OTHER}
