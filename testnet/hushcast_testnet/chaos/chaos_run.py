"""One chaos run: traffic, the faults of a plan, time to settle, and a verdict."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trio

from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.wording import counted
from hushcast_testnet.chaos.breaker import Breaker, ProcessBreaker
from hushcast_testnet.chaos.container_breaker import container_breaker
from hushcast_testnet.chaos.fault_plan import EVERY, LONGEST, Fault, Kind, plan
from hushcast_testnet.chaos.journal import Journal
from hushcast_testnet.chaos.traffic import ChaosTraffic
from hushcast_testnet.chaos.verdict import Verdict, judge, traces
from hushcast_testnet.inventory import Member, Testnet, away, deadline, describe, load
from hushcast_testnet.signals import until_signalled

SUBSCRIBE_WITHIN = 120.0  # seconds until all subscriptions are installed, before anything breaks
SETTLE_WITHIN = 180.0  # seconds after the last fault in which all must be shown; links try again within 60
HEALTHY_WITHIN = 120.0  # seconds after that in which every daemon must be ready
_LOOK_EVERY = 1.0  # seconds

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Chaos:
    """What to do to a testnet."""

    minutes: float = 1.0
    seed: int = 1
    kinds: Sequence[Kind] = ()
    """All that the testnet can suffer unless given."""
    every: float = EVERY
    longest: float = LONGEST
    rate: float = 2.0
    """Publications a second."""


def run_chaos(directory: Path, chaos: Chaos, progress: Progress = lambda text: None) -> dict[str, Any]:
    """Put a running testnet through a run and return its figures; all faults are taken away at the end.

    `ok` tells whether nothing with a receipt was lost, nothing acknowledged shown again, and every daemon is
    healthy. Raises `UsageError` if there is no testnet or it cannot suffer a kind of fault.
    """
    testnet = load(directory.absolute())
    breaker: Breaker = (
        trio.run(container_breaker, testnet) if testnet.containers is not None else ProcessBreaker(testnet)
    )
    for kind in chaos.kinds:
        if kind not in breaker.kinds:
            raise UsageError(
                f"this testnet cannot suffer {kind}: `testnet up --breakable` makes one that can; cut, delay "
                "and lose need --transport tcp or --backend containers, too"
            )
    return trio.run(until_signalled, _Run(directory.absolute(), testnet, breaker, chaos, progress).run)


class _Run:
    """One run."""

    def __init__(
        self, directory: Path, testnet: Testnet, breaker: Breaker, chaos: Chaos, progress: Progress
    ) -> None:
        self._directory = directory
        self._breaker = breaker
        self._chaos = chaos
        self._progress = progress
        self._testnet = testnet
        self._nodes = testnet.nodes
        clients = [member for member in self._nodes if member.role == "client"]
        self._subscribers: list[Member] = clients or self._nodes[:2]
        # The overlay works on without its directory; the central system is its server and proxies, too.
        self._breaking = {m.name: trio.Lock() for m in testnet.members if m.role != "directory"}
        self._epoch = testnet.epoch
        self._topic = f"chaos {chaos.seed} {time.time_ns()}"
        self._began = 0.0

    async def run(self) -> dict[str, Any]:
        """Subscribe, publish and break, settle, judge."""
        chaos, seconds = self._chaos, self._chaos.minutes * 60
        faults = plan(
            chaos.seed,
            seconds,
            list(self._breaking),
            chaos.kinds or self._breaker.kinds,
            chaos.every,
            chaos.longest,
            self._epoch,
        )
        with self._journal() as journal:
            traffic = ChaosTraffic(self._topic, journal, random.Random(f"hushcast traffic {chaos.seed}"))  # noqa: S311
            async with trio.open_nursery() as nursery:
                self._progress(f"subscribing at {counted(len(self._subscribers), 'daemon')}")
                with deadline(SUBSCRIBE_WITHIN, "not all subscriptions were installed in time"):
                    for member in self._subscribers:
                        await nursery.start(traffic.listen, member)
                self._began = trio.current_time()
                self._progress(
                    f"{counted(len(faults), 'fault')} in {seconds:g} s, messages a second: {chaos.rate:g}"
                )
                async with trio.open_nursery() as working:
                    working.start_soon(traffic.publish, self._nodes, chaos.rate, seconds)
                    for fault in faults:
                        working.start_soon(self._break, fault, journal)
                self._progress("all faults are over: waiting for what is on its way")
                verdict = await self._settle(journal)
                unhealthy = await self._unhealthy()
                nursery.cancel_scope.cancel()
            for member in self._subscribers:
                if member.name not in unhealthy:
                    await traffic.unsubscribe(member)
        return self._figures(faults, journal, verdict, unhealthy)

    @contextmanager
    def _journal(self) -> Iterator[Journal]:
        path = self._directory / "chaos" / f"seed-{self._chaos.seed}.jsonl"
        self._began = trio.current_time()
        journal = Journal(path, lambda: trio.current_time() - self._began)
        try:
            yield journal
        finally:
            journal.close()

    async def _break(self, fault: Fault, journal: Journal) -> None:
        await trio.sleep_until(self._began + fault.begin)
        lasts = fault.end - fault.begin
        async with self._breaking[fault.target]:  # on a busy machine a start outlasts the rest after a fault
            self._progress(f"{fault.begin:5.0f} s  {fault.kind} {fault.target} for {lasts:.1f} s")
            journal.note("begin", fault.target, fault=fault.kind, lasts=round(lasts, 3), amount=fault.amount)
            # An interrupted run leaves the testnet without faults: none is half there, or stays.
            with trio.CancelScope(shield=True):
                await self._breaker.begin(fault)
            try:
                await trio.sleep(lasts)
            finally:
                with trio.CancelScope(shield=True):
                    await self._breaker.end(fault)
            journal.note("end", fault.target, fault=fault.kind)

    async def _settle(self, journal: Journal) -> Verdict:
        verdict = self._judge(journal)
        until = trio.current_time() + SETTLE_WITHIN
        while verdict.lost and trio.current_time() < until:
            await trio.sleep(_LOOK_EVERY)
            verdict = self._judge(journal)
        return verdict

    def _judge(self, journal: Journal) -> Verdict:
        names = [member.name for member in self._subscribers]
        return judge(journal.events, traces(self._directory / "traces"), self._topic, names)

    async def _unhealthy(self) -> dict[str, str]:
        """Return the daemons that are not ready in time, or met an error of their own, and why."""
        found = dict.fromkeys(away(self._testnet), "not running")
        for member in self._nodes:
            described: dict[str, Any] = {}
            with trio.move_on_after(HEALTHY_WITHIN):
                while not (described := await describe(member)).get("ready"):  # noqa: ASYNC110
                    await trio.sleep(_LOOK_EVERY)
            if not described.get("ready"):
                found[member.name] = "not ready"
            elif errors := described["counters"]["internal_errors"]:
                found[member.name] = f"{errors} internal errors"
        return found

    def _figures(
        self, faults: list[Fault], journal: Journal, verdict: Verdict, unhealthy: dict[str, str]
    ) -> dict[str, Any]:
        asked = Counter(event.kind for event in journal.events)
        queued = {event.message for event in journal.events if event.kind in ("queued", "published")}
        judged = verdict.as_dict()
        return {
            "ok": not (verdict.lost or verdict.duplicated or unhealthy),
            "seed": self._chaos.seed,
            "minutes": self._chaos.minutes,
            "daemons": len(self._breaking),
            "faults": dict(sorted(Counter(fault.kind for fault in faults).items())),
            "published": len(queued) + asked["refused"],
            "refused": asked["refused"],
            **judged,
            "unhealthy": unhealthy,
        }
