"""An audit: what each authority shows is checked as daemons check it, and one set of heads told from two."""

from __future__ import annotations

import msgspec
import pytest
from authority_bench import authority_bench, sets
from directory_bench import NETWORK
from several_bench import FIRST, Truth, a_set, agreed

from hushcast_directory.client.audit import _shown, ask_all, audit_all
from hushcast_protocol.authorities.audit import Audit, AuditedAuthority, audit
from hushcast_protocol.authorities.directory_requests import HeadAnswer
from hushcast_protocol.authorities.evidence import check_fork, who_forked
from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.base.findings import Finding
from hushcast_protocol.shards.shard_requests import AskPiece, AskSlice, ShardUnavailable

FIVE = a_set(5, 3)


def honest(epochs: int = 3) -> Truth:
    truth = Truth(FIVE)
    for epoch in range(FIRST, FIRST + epochs):
        truth.agree(epoch)
    return truth


def examined(*shown: list[HeadAnswer] | str) -> tuple[Audit, dict[str, Finding]]:
    answers = [
        AuditedAuthority(str(number), (), one) if isinstance(one, str) else AuditedAuthority(str(number), one)
        for number, one in enumerate(shown)
    ]
    made = audit(NETWORK, FIVE, answers)
    return made, {finding.check: finding for finding in made.findings}


async def test_all_is_well() -> None:
    newest = honest().answer(None)
    made, found = examined([newest], [newest], [newest])
    assert {finding.verdict for finding in made.findings} == {"good"}
    assert found["0"].found == f"epoch {FIRST + 2}, 3 relays"
    assert "signed by 3 of 5" in found["agreement"].found
    assert not made.forks


async def test_one_that_is_away_one_that_lags_and_one_that_has_none() -> None:
    truth = honest()
    newest, old = truth.answer(None), truth.answer(FIRST)
    made, found = examined([newest], "nobody there", [old], [HeadAnswer((), (), (), False, None)])
    assert [found[name].verdict for name in "0123"] == ["good", "warning", "warning", "warning"]
    assert "not reached: nobody there" in found["1"].found
    assert "1 behind" in found["2"].found
    assert "no head" in found["3"].found
    assert found["agreement"].verdict == "good"
    assert not made.forks


async def test_what_does_not_hold() -> None:
    """Too few signatures, another root, another's descriptor: told of the one that shows it alone."""
    newest = honest().answer(None)
    unsigned = agreed(FIVE, FIRST + 2, signers=2)
    fewer = msgspec.structs.replace(newest, seats=newest.seats[1:])
    _, found = examined([newest], [unsigned], [fewer])
    assert [found[name].verdict for name in ("0", "1", "2", "agreement")] == ["good", "bad", "bad", "good"]
    assert "too few signatures" in found["1"].found
    assert "not those that its head stands for" in found["2"].found


async def test_two_heads_of_one_epoch_are_proven() -> None:
    """Shown by two who agree with themselves, or by one."""
    one, other = agreed(FIVE, FIRST, numbers=(0, 1)), agreed(FIVE, FIRST, numbers=(0, 2))
    both = HeadAnswer((one.heads[0], other.heads[0]), (), (), False, None)
    for shown in (([one], [other]), ([both],)):
        made, found = examined(*shown)
        assert found["agreement"].verdict == "bad"
        assert str(FIRST) in found["agreement"].found
        (fork,) = made.forks
        check_fork(fork, NETWORK.id, FIVE)
        assert len(who_forked(fork, NETWORK.id, FIVE)) == 3


async def test_nobody_shows_anything() -> None:
    _, found = examined("nobody there")
    assert found["agreement"].verdict == "bad"


class Shown:
    """Asked as a `DirectoryClient` is."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth

    async def roster(self, after: int | None) -> HeadAnswer:
        return self._truth.answer(after)


async def test_several_epochs_are_asked_for_one_after_the_other() -> None:
    truth = honest(6)
    shown = await _shown(Shown(truth), 4)  # type: ignore[arg-type]
    made, found = examined(shown)
    assert len(shown) == 4
    assert found["agreement"].verdict == "good"
    assert len(await _shown(Shown(truth), 1)) == 1  # type: ignore[arg-type]
    assert len(await _shown(Shown(truth), 48)) == 6  # type: ignore[arg-type]
    gap = [one for one in shown if one is not shown[1]]
    assert "none of the epoch before" in examined(gap)[1]["agreement"].found
    assert not made.forks


async def test_directories_that_run_are_audited() -> None:
    """One of three is dead: the others show the same heads, and every relay's descriptor."""
    async with authority_bench(3, 2) as made:
        await made.directories[2].kill()
        await made.until(made.epoch + 4.9)
        pinned = sets(3, 2)
        answers = await ask_all(made.env, made.wires.transport(), NETWORK, pinned.members, 3)
        told = audit(NETWORK, pinned, answers)
    verdicts = [finding.verdict for finding in told.findings]
    assert verdicts == ["good", "good", "warning", "good"]
    assert "3 relays" in told.findings[0].found
    assert "signed by 2 of 3" in told.findings[-1].found


@pytest.mark.slow
async def test_all_parts_of_a_network_in_shards_are_audited() -> None:
    """One of three serves a slice of another shard, and one has lost some: the audit says which."""
    async with authority_bench(3, 2, 12, shard_size=4) as made:
        await made.until(made.epoch + 2.9)
        pinned = sets(3, 2, shard_size=4)
        env, transport = made.env, made.wires.transport()
        fine = await audit_all(env, transport, NETWORK, pinned, 2)
        assert {finding.verdict for finding in fine.findings} == {"good"}
        assert [one.found for one in fine.findings[-3:]] == ["all 5 parts are served, and hold"] * 3
        assert fine.newest is not None
        day = inside_of(fine.newest).shards[0].day
        liar, poor = (made.directories[number].agreeing for number in (0, 1))
        part, other = liar.part, poor.part
        liar.part = lambda asked: part(AskSlice(day, 2) if asked == AskSlice(day, 1) else asked)  # type: ignore[method-assign]
        poor.part = lambda asked: (  # type: ignore[method-assign]
            ShardUnavailable() if isinstance(asked, AskPiece) or asked == AskSlice(day, 3) else other(asked)
        )
        told = await audit_all(env, transport, NETWORK, pinned, 1)
    assert [finding.verdict for finding in told.findings] == ["good"] * 4 + ["bad", "warning", "good"]
    wrong, lacking, _ = told.findings[-3:]
    assert wrong.check == f"{told.findings[0].check}, shards"
    assert wrong.found.startswith(f"1 of 5 parts do not hold: shard 1 of day {day}: a slice is ")
    assert lacking.found == "2 of 5 parts were not shown"


async def test_who_is_away_is_asked_for_no_parts() -> None:
    async with authority_bench(3, 2, 6, shard_size=4) as made:
        await made.directories[1].kill()
        await made.until(made.epoch + 2.9)
        told = await audit_all(made.env, made.wires.transport(), NETWORK, sets(3, 2, shard_size=4), 1)
    verdicts = [finding.verdict for finding in told.findings]
    assert verdicts == ["good", "warning", "good", "good", "good", "good"]
