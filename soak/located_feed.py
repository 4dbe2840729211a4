"""A located feed from a folder of alerts, whose owner is killed twice and takes another key."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trio

import hushcast
import hushcast_located
from hushcast.keys import new_link, write_link
from hushcast_located.batch_folder import BatchFolder
from hushcast_located.keys import new_owner
from hushcast_located.subscriber.environment import SubscriberEnvironment
from hushcast_protocol.spatial.batch import check_next
from hushcast_protocol.spatial.owner_keys import OwnerKeys
from hushcast_protocol.spatial.tmr_tree import entries_of

HERE = (60.17, 24.94)
TEXTS = {
    "storm": "Storm warning, coast of Uusimaa",
    "台風": "明日は大型の台風が来ます",
    "น้ำ": "ระวังน้ำท่วมในกรุงเทพ",
}
"""What alerts say, by the keyword that has to find it: words with spaces between them, and without."""
_CAP = """<alert xmlns="urn:oasis:names:tc:emergency:cap:1.2"><identifier>%s</identifier>
<status>Actual</status><msgType>Alert</msgType><scope>Public</scope><info><event>%s</event><area><areaDesc>here</areaDesc>
<circle>60.17,24.94 10</circle></area></info></alert>"""
_ATOM = """<feed xmlns="http://www.w3.org/2005/Atom" xmlns:georss="http://www.georss.org/georss"><title>t</title>
<entry><id>%s</id><title>%s</title><georss:point>60.17 24.94</georss:point></entry></feed>"""
_READY_WITHIN = 240.0  # seconds until the provider has its topics routed, over Tor
_LATE = 180.0  # seconds after the last interval until all of it has to be told


@dataclass(frozen=True)
class FeedPlan:
    """How many intervals of how many seconds; alerts an interval; until when a killed owner is away."""

    intervals: int
    seconds: int
    alerts: int = 4
    away: float = 5.0

    def event(self, number: int) -> str:
        """What happens to the owner after an interval: it is killed after a quarter and after three."""
        if number in (self.intervals // 4, 3 * self.intervals // 4):
            return "kill"
        return "key" if number == self.intervals // 2 else ""


@dataclass
class FeedFigures:
    """What came of it."""

    batches: int = 0
    alerts: int = 0
    kills: int = 0
    keys: int = 1
    told: dict[str, int] = field(default_factory=dict)
    """Messages by keyword."""
    problems: list[str] = field(default_factory=list)
    silences: int = 0
    """Times that a subscriber was told that nothing came: of an owner that is away it is true."""
    lateness: float = 0.0
    """From the end of an interval until a subscriber has checked its answer, the median."""


async def ready_private(daemon: hushcast.Daemon) -> set[str]:
    """The handles of private subscriptions that are ready: who was there before may have left some."""
    return {one.handle for one in await daemon.subscriptions() if one.is_private and one.is_ready}


class LocatedFeed:
    """An owner, a provider and a subscriber for each keyword, beside daemons that run already."""

    def __init__(
        self, folder: Path, sockets: Mapping[str, Path], plan: FeedPlan, nursery: trio.Nursery
    ) -> None:
        """`sockets` are the daemons' of `owner`, `provider` and `subscriber`."""
        self.plan, self.figures = plan, FeedFigures()
        self._folder, self._sockets, self._nursery = folder, sockets, nursery
        self._alerts: dict[str, str] = {}  # keyword by id
        self._told: dict[str, list[hushcast_located.Interval]] = {word: [] for word in TEXTS}
        self._keys: dict[str, list[str]] = {word: [] for word in TEXTS}
        self._late: list[float] = []
        self._processes: dict[str, trio.Process] = {}
        (folder / "alerts").mkdir(parents=True)
        write_link(folder / "feed.link", new_link("feed", private=True))
        self._seeds = [new_owner(folder / name, os.urandom) for name in ("first.key", "second.key")]
        self._configure('key = "{0}/first.key"')

    async def play(self, progress: Callable[[str], None]) -> FeedFigures:
        """Let all intervals pass; return what came of them."""
        async with hushcast.connect(self._sockets["provider"]) as daemon:
            before = await ready_private(daemon)
            await self._start("provider", "service")
            with trio.fail_after(_READY_WITHIN):
                while len(await ready_private(daemon) - before) < 2:  # noqa: ASYNC110 - no event tells
                    await trio.sleep(0.2)
        accepted = [trio.Event() for _ in TEXTS]
        for word, event in zip(TEXTS, accepted, strict=True):
            self._nursery.start_soon(self._follow, word, event)
        with trio.fail_after(_READY_WITHIN):
            for one in accepted:
                await one.wait()
        progress(f"all subscribed, {self.plan.intervals} intervals of {self.plan.seconds} s begin")
        await self._start("owner", "owner_service")
        for number in range(1, self.plan.intervals + 1):
            await self._interval(number)
            if change := self.plan.event(number):
                progress(f"after interval {number}: {change}")
                await self._again(change)
        self._check(await self._until_told())
        for process in self._processes.values():
            process.kill()
            await process.wait()
        return self.figures

    async def _interval(self, number: int) -> None:
        """Put alerts into the folder, one after the other, each in another form."""
        for at in range(self.plan.alerts):
            name, turn = f"{number}.{at}", self.figures.alerts
            word = [*TEXTS][turn % len(TEXTS)]
            form = (_CAP, _ATOM, "")[(turn // len(TEXTS)) % 3]
            line = json.dumps({"id": name, "lat": HERE[0], "lon": HERE[1], "text": TEXTS[word]}) + "\n"
            part = self._folder / "alerts" / f".{name}"
            part.write_text(form % (name, TEXTS[word]) if form else line)
            part.rename(self._folder / "alerts" / name)
            self._alerts[name] = word
            self.figures.alerts += 1
            await trio.sleep(self.plan.seconds / self.plan.alerts)

    async def _again(self, event: str) -> None:
        """End the owner, and start it again some seconds later: with another key, or after a kill."""
        process = self._processes["owner"]
        if event == "kill":
            process.kill()
            self.figures.kills += 1
        else:
            process.send_signal(signal.SIGTERM)
            self._configure('key = "{0}/second.key"\nformer_key = "{0}/first.key"')
            self.figures.keys += 1
        await process.wait()
        await trio.sleep(self.plan.away)
        await self._start("owner", "owner_service")

    def _configure(self, keys: str) -> None:
        folder = self._folder
        (folder / "owner.toml").write_text(
            f'program = "located-owner"\nstate = "{folder}/owner"\nfeed = "{folder}/feed.link"\n'
            f"interval = {self.plan.seconds}\n{keys.format(folder)}\n"
            f'[daemon]\nsocket = "{self._sockets["owner"]}"\n[input]\ndirectory = "{folder}/alerts"\n'
        )
        (folder / "provider.toml").write_text(
            f'program = "located-provider"\nstate = "{folder}/provider"\nfeed = "{folder}/feed.link"\n'
            f'owner = "{self._seeds[0].public().hex()}"\ndifficulty = 4\n'
            f'[daemon]\nsocket = "{self._sockets["provider"]}"\n'
        )

    async def _start(self, name: str, module: str) -> None:
        command = [sys.executable, "-m", f"hushcast_located.{module}", str(self._folder / f"{name}.toml")]
        with (self._folder / f"{name}.log").open("ab") as log:
            self._processes[name] = await trio.lowlevel.open_process(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    async def _follow(self, word: str, accepted: trio.Event) -> None:
        """Follow the feed for a keyword alone, as who has the owner's first key."""
        world = SubscriberEnvironment(retry=10.0)
        async with hushcast.connect(self._sockets["subscriber"]) as daemon:
            feed = hushcast_located.subscribe(
                daemon,
                (self._folder / "provider" / "offer").read_text(),
                at=HERE,
                keywords=[word],
                alpha=1.0,
                owner=self._seeds[0].public().hex(),
                world=world,
            )
            async with feed:
                async for event in feed:
                    if isinstance(event, hushcast_located.RequestAccepted):
                        accepted.set()
                    elif isinstance(event, hushcast_located.Interval):
                        self._told[word].append(event)
                        self._late.append(time.time() - event.start - event.seconds)
                    elif isinstance(event, hushcast_located.OwnerKeyChange):
                        self._keys[word].append(event.owner)
                    elif isinstance(event, hushcast_located.FeedTrouble):
                        if event.problem is hushcast_located.AnswerProblem.SILENT:
                            self.figures.silences += 1
                        else:
                            between = f"{event.first} to {event.last}"
                            self.figures.problems.append(f"{word}: {event.problem} {between}")

    async def _until_told(self) -> list[str]:
        """Wait until every alert is in a batch, and all of these were told; return the ids in batches."""
        with trio.move_on_after(self.plan.seconds + _LATE):
            while len(signed := self._signed()) < len(self._alerts) or not self._are_told():  # noqa: ASYNC110
                await trio.sleep(0.5)
        return signed

    def _are_told(self) -> bool:
        return all(len(told) >= self.figures.batches for told in self._told.values())

    def _signed(self) -> list[str]:
        """Return the ids in all batches, which follow each other without a second between them."""
        folder = BatchFolder(self._folder / "owner" / "batches")
        numbers = sorted(folder.numbers())  # first: a hand-over is there before what its key signs
        keys = OwnerKeys.read(self._seeds[0].public(), folder.handovers())
        found: list[str] = []
        before = None
        for number in numbers:
            signer, feed = folder.read(number)
            if before is not None:
                check_next(feed.batch, before)
            if signer != keys.of(number) or (before is not None and feed.batch.body.start != before.end):
                self.figures.problems.append(f"batch {number} is of another key, or leaves time out")
            before = feed.batch
            found += [entry.message.id for entry in entries_of(feed.root)]
        self.figures.batches = 0 if before is None else before.body.number
        return found

    def _check(self, signed: list[str]) -> None:
        """Compare what was put in, signed and told; the owner goes on to sign what is empty."""
        problems = self.figures.problems
        if sorted(signed) != sorted(self._alerts):
            problems.append(f"{len(self._alerts)} alerts, {len(signed)} in batches")
        for word, told in self._told.items():
            if self._keys[word] != [self._seeds[1].public().hex()]:
                problems.append(f"{word}: told of {len(self._keys[word])} other keys, or of a wrong one")
            numbers = [one.number for one in told if one.number <= self.figures.batches]
            if numbers != [*range(1, self.figures.batches + 1)]:
                problems.append(f"{word}: intervals {numbers} of {self.figures.batches}")
            ids = [one.id for interval in told for one in interval.messages]
            self.figures.told[word] = len(ids)
            if sorted(ids) != sorted(name for name, wanted in self._alerts.items() if wanted == word):
                problems.append(f"{word}: told {len(ids)} messages, not those that were put in")
        self.figures.lateness = round(statistics.median(self._late), 1) if self._late else -1.0


async def play_feed(
    folder: Path, sockets: Mapping[str, Path], plan: FeedPlan, progress: Callable[[str], None]
) -> FeedFigures:
    """Play a feed beside daemons that run; what it came to."""
    async with trio.open_nursery() as nursery:
        figures = await LocatedFeed(folder, sockets, plan, nursery).play(progress)
        nursery.cancel_scope.cancel()
    return figures


def watch_feed(
    folder: Path, sockets: Mapping[str, Path], plan: FeedPlan, progress: Callable[[str], None]
) -> dict[str, Any]:
    """Play a feed; its figures, and `ok`: whether nothing was missing, and all of it held."""
    figures = trio.run(play_feed, folder, sockets, plan, progress)
    return {"ok": not figures.problems, **vars(figures)}
