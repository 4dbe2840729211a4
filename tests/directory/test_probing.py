"""What an authority's operator runs: hidden subscriptions that come and go apart, and what is listed."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
import trio
from directory_bench import BEGIN, CALENDAR, EPOCH

from hushcast.errors import TimedOut
from hushcast_directory.server.expulsion_list import read, write
from hushcast_directory.server.hidden_subscriptions import GAP, LIFE, HiddenSubscriptions
from hushcast_directory.server.loss_trials import MAX_HIDDEN
from hushcast_protocol.authorities.expulsion import EVIDENCE_DAYS, MIN_TRIALS, ExpelledRelay, LossTrial
from hushcast_protocol.base.errors import Refusal, UsageError
from hushcast_runtime.environment import simulated_environment

RELAYS = [number.to_bytes(32, "big") for number in range(40)]
BAD = RELAYS[7]
WORD = "no relay answers"


class Daemon:
    """A daemon whose subscriptions tell that one relay loses half of what it is given."""

    def __init__(self) -> None:
        self.held: dict[str, float] = {}
        self.lives: list[tuple[float, float]] = []
        self.topics: Counter[str] = Counter()
        self.bad: dict[bytes, float] = {BAD: 0.5}
        self.refuses = False

    async def subscribe(self, topic: str) -> None:
        await trio.sleep(1)
        if self.refuses:
            raise Refusal(WORD)
        self.held[topic] = trio.current_time()
        self.topics[topic] += 1

    async def unsubscribe(self, topic: str) -> None:
        await trio.sleep(1)
        if self.refuses:
            raise Refusal(WORD)
        if topic in self.held:
            self.lives.append((self.held.pop(topic), trio.current_time()))

    async def losses(self, topic: str) -> LossTrial | None:
        await trio.lowlevel.checkpoint()
        if topic not in self.held:
            return None
        return {
            relay: (10 * self.bad.get(relay, 0.0), 10 * (1 - self.bad.get(relay, 0.0))) for relay in RELAYS
        }


def probing(daemon: Daemon, file: Path, subscriptions: int = 8, seed: str = "one") -> HiddenSubscriptions:
    env = simulated_environment(seed, BEGIN)
    return HiddenSubscriptions(daemon, CALENDAR, env, file, subscriptions)


async def run_for(one: HiddenSubscriptions, epochs: float) -> None:
    with trio.move_on_after(epochs * EPOCH):
        await one.run()


@pytest.mark.slow
async def test_a_relay_that_loses_is_listed_once_there_are_enough_trials(tmp_path: Path) -> None:
    daemon, file = Daemon(), tmp_path / "expelled"
    async with trio.open_nursery() as nursery:
        one = probing(daemon, file)
        nursery.start_soon(one.run)
        while not (listed := one.expelled()):
            assert one.trials < MIN_TRIALS
            await trio.sleep(EPOCH)
        assert [(entry.relay, entry.why) for entry in listed] == [
            (BAD, "lost 80 of 160 probes, in 16 trials")
        ]
        assert 2 * LIFE[0] <= trio.current_time() / EPOCH <= 2 * (LIFE[1] + GAP[1] + 1)
        assert abs(listed[0].since - CALENDAR.epoch(BEGIN + trio.current_time())) <= 1
        # What is over is judged anew, by what the relay did of late.
        daemon.bad = {}
        await trio.sleep((EVIDENCE_DAYS + 7) * 24 * EPOCH)
        assert one.expelled() == ()
        assert one.trials <= 8 * EVIDENCE_DAYS * 24 / LIFE[0]
        daemon.bad = dict.fromkeys(RELAYS[:20], 1.0)
        await trio.sleep(3 * 24 * EPOCH)
        assert one.expelled() == (), "half of all relays: the fault is here"
        nursery.cancel_scope.cancel()


@pytest.mark.slow
async def test_no_two_subscriptions_begin_or_end_together(tmp_path: Path) -> None:
    daemon = Daemon()
    await run_for(probing(daemon, tmp_path / "expelled"), 200)
    assert len(daemon.lives) > 80
    assert max(daemon.topics.values()) == 1
    assert all(len(topic) == 32 for topic in daemon.topics)
    moments = sorted(moment for life in daemon.lives for moment in life)
    assert sum(later - earlier < 1 for earlier, later in pairwise(moments)) < len(moments) / 10
    lasted = [(end - begin) / EPOCH for begin, end in daemon.lives]
    assert min(lasted) < LIFE[0] + 1
    assert max(lasted) > LIFE[1] - 1


async def test_what_a_crash_interrupted_goes_on(tmp_path: Path) -> None:
    daemon, file = Daemon(), tmp_path / "expelled"
    await run_for(probing(daemon, file), 15)
    before = set(daemon.held)
    assert len(before) >= 6
    again = probing(daemon, file, seed="two")
    trials = len(json.loads((tmp_path / "expelled.evidence").read_text())["trials"])
    assert trials >= 1
    assert (tmp_path / "expelled.evidence").stat().st_mode & 0o777 == 0o600
    await run_for(again, 4)
    assert again.trials >= trials
    assert max(daemon.topics.values()) == 1
    await run_for(probing(daemon, file, 6, seed="three"), 40)
    assert before.isdisjoint(daemon.held)
    assert len(daemon.held) <= 6
    assert [one.relay for one in read(file)] == [BAD]


async def test_a_daemon_that_refuses_is_asked_again(tmp_path: Path) -> None:
    daemon = Daemon()
    daemon.refuses = True
    one = probing(daemon, tmp_path / "expelled")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one.run)
        await trio.sleep(3 * EPOCH)
        assert one.problem == WORD
        assert not daemon.held
        daemon.refuses = False
        await trio.sleep(3 * EPOCH)
        assert one.problem is None
        assert len(daemon.held) == 8
        daemon.refuses = True
        await trio.sleep(18 * EPOCH)
        daemon.refuses = False
        await trio.sleep(4 * EPOCH)
        assert one.trials >= 8
        nursery.cancel_scope.cancel()


async def test_a_daemon_that_lost_its_subscriptions_is_given_others(tmp_path: Path) -> None:
    daemon = Daemon()
    one = probing(daemon, tmp_path / "expelled")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one.run)
        await trio.sleep(4 * EPOCH)
        daemon.held.clear()
        await trio.sleep(12 * EPOCH)
        assert one.trials == 0
        assert len(daemon.held) >= 1
        nursery.cancel_scope.cancel()


async def test_a_list_by_hand_stays_and_one_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    file = tmp_path / "expelled"
    mine = ExpelledRelay(RELAYS[3], CALENDAR.epoch(BEGIN), "I know them")
    write(file, [mine])
    await run_for(probing(Daemon(), file), 36)
    assert [one.relay for one in read(file)] == [RELAYS[3], BAD]
    assert read(file)[0].why == "I know them"
    file.write_text("nobody\n")
    with pytest.raises(UsageError, match="line 1"):
        await probing(Daemon(), file).run()
    file.unlink()
    for text in ("{", '{"hidden": [], "trials": [{"ended": 1, "relays": {"aa": [1, 2]}}]}'):
        (tmp_path / "expelled.evidence").write_text(text)
        with pytest.raises(UsageError, match="delete it to begin anew"):
            await probing(Daemon(), file).run()


async def test_evidence_is_bounded(tmp_path: Path) -> None:
    evidence = tmp_path / "expelled.evidence"
    many = [{"topic": f"{number}", "ends": BEGIN} for number in range(MAX_HIDDEN + 5)]
    trials = [{"ended": BEGIN - number, "relays": {BAD.hex(): [1, 0]}} for number in range(600)]
    evidence.write_text(json.dumps({"hidden": many, "trials": trials}))
    one = probing(Daemon(), tmp_path / "expelled")
    await run_for(one, 2)
    assert one.trials <= 512
    assert len(json.loads(evidence.read_text())["hidden"]) <= 8


class Unsure(Daemon):
    """A daemon that ends subscriptions, and is restarted before it can say so."""

    def __init__(self) -> None:
        super().__init__()
        self.is_unsure = True

    async def unsubscribe(self, topic: str) -> None:
        await super().unsubscribe(topic)
        self.is_unsure = not self.is_unsure
        if not self.is_unsure:
            raise TimedOut(WORD)


async def test_what_a_subscription_told_counts_though_its_end_was_not_confirmed(tmp_path: Path) -> None:
    daemon = Unsure()
    one = probing(daemon, tmp_path / "expelled", subscriptions=1)
    await run_for(one, EVIDENCE_DAYS * 20)
    assert len(daemon.lives) > 1
    assert one.trials == len(daemon.lives)
