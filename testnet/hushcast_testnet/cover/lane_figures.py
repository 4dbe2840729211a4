"""The lab's rows for readers: what the way down is measured by, and controls to be found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from hushcast_testnet.cover.chance_lines import LineKind
from hushcast_testnet.cover.colluding_hosts import readers_named
from hushcast_testnet.cover.colluding_relays import CollusionScene
from hushcast_testnet.cover.cover_figures import CoverFigure
from hushcast_testnet.cover.lane_watchers import (
    ErrandRule,
    block_matched,
    blocks_until_asked,
    empty_told_apart,
    items_lost,
    owner_guessed,
    owner_told_of,
    owner_waited_for,
    shower_guessed,
)
from hushcast_testnet.cover.laned_network import LaneFault
from hushcast_testnet.cover.losing_porter import AuthorHabit, PorterLoss, losing_outcome

_DAEMONS = 6  # of networks whose blocks are sealed
_OF_A_HOST = 20  # lines that a host or second compares
_WAITS = 25  # of each draw
_LOST, _A_DAY = 0.2, 48  # share of blocks that a porter loses; items of a box
# A subscription's letters a day, and share that relays get which are in league with a porter; and that of the
# rounds which it loses. A tree over 500 relays takes 66 (`letter_parcels.letters_of`), a host one.
_TREE, _ERRAND = AuthorHabit(1, 66, is_errand=True), AuthorHabit(1, is_errand=True)
_SET_UP = (
    ("all relays of a tree", _TREE, 0.9, PorterLoss.LOSES),
    ("all relays of a tree", _TREE, 0.4, PorterLoss.LOSES),
    ("all relays of a tree", _TREE, 0.2, PorterLoss.LOSES),
    ("all relays of a tree", _TREE, 0.1, PorterLoss.LOSES),
    ("all relays of a tree", _TREE, 0.04, PorterLoss.LOSES),
    ("all relays of a tree", _TREE, 0.04, PorterLoss.RELEASES),
    ("all relays of a tree", _TREE, 0.02, PorterLoss.RELEASES),
    ("a tenth of a tree's relays", replace(_TREE, seen=0.1), 0.2, PorterLoss.LOSES),
    ("a host a day", _ERRAND, 0.2, PorterLoss.LOSES),
)
_NAMED = 0.05
_CHANCE = 1.5  # times chance that a guess may be right


def lane_figures(scene: CollusionScene, progress: Callable[[str], None]) -> list[CoverFigure]:
    """Measure everything of readers; the scene's `share` is set here."""
    progress("blocks of readers in rounds")
    found = list(_blocks(scene))
    progress("hosts and seconds that wait for a word")
    found += _words(scene)
    progress("a porter that loses readers' letters")
    found += _set_up(scene)
    progress("hosts that collude")
    found += _readers(scene)
    return found


def _blocks(scene: CollusionScene) -> Iterator[CoverFigure]:
    none, passes = LaneFault.NONE, LaneFault.PASSES_WHAT_CAME
    seed, trials = scene.seed, max(2, scene.draws // 2)
    guess = owner_guessed(_DAEMONS, trials, none, seed)
    yield CoverFigure("host's guess of the owner by rounds it withholds (times chance)", guess, 0, _CHANCE)
    guess = owner_guessed(_DAEMONS, trials, passes, seed)
    yield CoverFigure(f"control: {passes.value}", guess, _DAEMONS / 2, _DAEMONS)
    yield CoverFigure(
        "an empty box told from a full one by its second (AUC)", empty_told_apart(none, seed), 0.5, 0.55
    )
    longer = LaneFault.EMPTY_LONGER
    yield CoverFigure(f"control: {longer.value} (AUC)", empty_told_apart(longer, seed), 0.6, 1)
    matched = block_matched(_DAEMONS, none, seed)
    yield CoverFigure(
        "owner found by host and porter in each other's blocks (times chance)", matched, 0, _CHANCE
    )
    copies = LaneFault.COPIES
    yield CoverFigure(
        f"control: {copies.value}", block_matched(_DAEMONS, copies, seed), _DAEMONS / 2, _DAEMONS
    )
    lost = items_lost(_LOST, _A_DAY, seed)
    yield CoverFigure("items lacking after a week, a fifth of blocks lost, nobody asks", lost, 0, 0)


def _words(scene: CollusionScene) -> Iterator[CoverFigure]:
    seed, waits = scene.seed, _WAITS * scene.draws
    told = {rule: owner_waited_for(_OF_A_HOST, waits, rule, seed) for rule in ErrandRule}
    once = {kind: owner_told_of(_OF_A_HOST, waits, kind, seed) for kind in (LineKind.BY_DAY, LineKind.ALWAYS)}
    for kind, guess in once.items():
        name = f"host's guess of the owner, {kind.value}, by when a quarter's lane begins (times chance)"
        yield CoverFigure(name, guess, 0, _CHANCE)
    always = owner_waited_for(_OF_A_HOST, waits, ErrandRule.DAILY, seed, are_always_there=True)
    name = "host's guess of the owner, always on, by when it is told each day (times chance)"
    yield CoverFigure(name, always, 0, _CHANCE)
    yield CoverFigure(
        "control: the same by day where it is told each week", told[ErrandRule.WEEKLY], 2, _OF_A_HOST
    )
    yield CoverFigure(
        "control: the same by day where it is told each day", told[ErrandRule.DAILY], 5, _OF_A_HOST
    )
    shown, there = (shower_guessed(_OF_A_HOST, waits, only_there, seed) for only_there in (False, True))
    yield CoverFigure("second's guess of the owner by when bills are shown (times chance)", shown, 0, _CHANCE)
    yield CoverFigure(
        "control: the same where they are shown while the daemon is there", there, 5, _OF_A_HOST
    )
    asked = blocks_until_asked(1000, _LOST, seed)
    yield CoverFigure("control: blocks until host and losing porter name an owner that asks", asked, 1, 60)


def _set_up(scene: CollusionScene) -> Iterator[CoverFigure]:
    """Readers by the letters that set their subscriptions up, as they go from a daemon that publishes."""
    for whom, habit, lost, how in _SET_UP:
        found = losing_outcome(scene.users, lost, habit, scene.draws, how, scene.seed)
        name = f"readers named by {whom} and a porter that {how.value} {lost:.1%} of rounds"
        yield CoverFigure(f"{name}, by {found.needed}", found.named, 0, _NAMED)


def _readers(scene: CollusionScene) -> Iterator[CoverFigure]:
    for share, most in ((0.1, 0.003), (0.2, 0.015)):
        named = readers_named(replace(scene, share=share))
        name = f"{share:.0%} of relays collude"
        yield CoverFigure(f"readers named in 60 days, host stays, {name}", named.host_stays, 0, most)
        cut = "readers named in 60 days, a host a day"
        # A fifth is beyond the bar by the model too: 4 %.
        yield CoverFigure(f"{cut}, {name}", named.cut, 0, 0.015)
        yield CoverFigure(f"{cut}, from any day of a quarter, {name}", named.cut_over_turn, 0, 0.015)
        least = share / 2
        yield CoverFigure(
            f"control: a host a day, no second needed, {name}", named.without_second, least, 2 * share
        )
