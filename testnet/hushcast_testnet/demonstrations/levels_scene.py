"""A scene of demonstrations: a condition is shown to brokers only while enough subscribers stand behind it.

Daemons of one edge broker subscribe to the same condition with k = 3, one leaves and comes back, another
comes. What their daemons are told, what the broker above the edge broker has heard, and whom a message
reaches is looked at after each of these.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trio

import hushcast
from hushcast.keys import new_link
from hushcast_protocol.brokers.frames import decode_shown
from hushcast_runtime.change_signal import ChangeSignal
from hushcast_runtime.wording import listed
from hushcast_testnet.inventory import deadline

K = 3
TERMS = hushcast.Terms(K, "source", "wait")
WHERE, VISIT = "age in [30, 45]", {"age": 40}
EDGE, ABOVE = "edge-1", "inner-1"
PUBLISHER = "client-6"
CHANGES = (
    ("client-1", "comes"),
    ("client-2", "comes"),
    ("client-3", "comes"),
    ("client-3", "leaves"),
    ("client-3", "comes back"),
    ("client-4", "comes"),
)
SHOWN = (False, False, True, False, False, True)
"""Whether the condition is to be shown after each of these: what sank below 3 is shown again at 4."""
TOLD_WITHIN = 60.0  # seconds; over Tor measured below three
ARRIVE_WITHIN = 60.0  # seconds
STRAY_WITHIN = 1.0  # seconds to wait for what is to come to nobody; whatever comes later counts, too

Tell = Callable[[str], None]


@dataclass
class _Scene:
    """Who is subscribed, and what came to whom."""

    sockets: Mapping[str, Path]
    traces: Path
    topic: str = field(default_factory=lambda: new_link("clinic", ["age:0..120"]))
    listening: dict[str, trio.CancelScope] = field(default_factory=dict)
    arrived: dict[str, list[str]] = field(default_factory=dict)
    """Names of daemons, by the message that came to them."""
    news: ChangeSignal = field(default_factory=ChangeSignal)
    before: set[bytes] = field(default_factory=set)
    """Filters that were shown before the scene began."""

    async def change(self, name: str, nursery: trio.Nursery) -> None:
        """Have a daemon subscribe, or unsubscribe if it has."""
        if name not in self.listening:
            self.listening[name] = trio.CancelScope()
            nursery.start_soon(self._listen, name)
            return
        self.listening.pop(name).cancel()
        async with hushcast.connect(self.sockets[name]) as daemon:
            await daemon.unsubscribe(self.topic, where=WHERE)

    async def _listen(self, name: str) -> None:
        with self.listening[name]:
            async with (
                hushcast.connect(self.sockets[name]) as daemon,
                daemon.subscribe(self.topic, where=WHERE, terms=TERMS) as messages,
            ):
                async for message in messages:
                    self.arrived.setdefault(message.id, []).append(name)
                    self.news.tell()

    async def told(self, is_shown: bool) -> dict[str, Any]:
        """Return how the subscriptions stand, once all are told the same, and that this is so above."""
        with deadline(TOLD_WITHIN, "subscribers were not told in time how their subscription stands"):
            while True:
                stand = [await self._standing(name) for name in self.listening]
                is_so = all(one.get("outside") is is_shown for one in stand)
                if is_so and len(outside(self.traces) - self.before) == int(is_shown):
                    return {"subscribers": len(stand), "shown": is_shown}
                await trio.sleep(0.1)

    async def _standing(self, name: str) -> dict[str, Any]:
        async with hushcast.connect(self.sockets[name]) as daemon:
            for one in await daemon.subscriptions():
                if one.described.get("k") == K:
                    return one.described
        return {}

    async def publish(self, is_shown: bool) -> str:
        """Publish what meets the condition; return its id once it came to all, or would have."""
        async with hushcast.connect(self.sockets[PUBLISHER]) as daemon:
            message = (await daemon.publish(self.topic, "a visit", attributes=VISIT)).id
        with trio.move_on_after(ARRIVE_WITHIN if is_shown else STRAY_WITHIN):
            while len(self.arrived.get(message, ())) < len(self.listening) or not is_shown:
                await self.news.wait()
        return message


async def show_levels(sockets: Mapping[str, Path], traces: Path, tell: Tell) -> dict[str, Any]:
    """Play the scene on the daemons at these control sockets, by name; return what was seen.

    Raises `TransportError` where subscribers are not told in time.
    """
    scene = _Scene(sockets, traces)
    scene.before = outside(traces)
    tell(
        f"Four daemons at {EDGE} subscribe to “clinic” where {WHERE}, with --k {K} --condition source"
        " --otherwise wait."
    )
    tell("After each step a message for it is published, which goes to:")
    tell("")
    steps: list[dict[str, Any]] = []
    async with trio.open_nursery() as nursery:
        for (name, verb), is_shown in zip(CHANGES, SHOWN, strict=True):
            await scene.change(name, nursery)
            step = {"change": f"{name} {verb}", **await scene.told(is_shown)}
            step["outside"] = len(outside(traces) - scene.before)
            step["message"] = await scene.publish(is_shown)
            step["to"] = sorted(scene.listening) if is_shown else []
            steps.append(step)
            came = listed(sorted(scene.arrived.get(step["message"], ())))
            shown = f"“{WHERE}”" if is_shown else "nothing"
            there = f"{step['subscribers']} want it"
            tell(f"  {step['change']:<19} {there}, {ABOVE} is shown {shown:<17} → {came or 'nobody'}")
        nursery.cancel_scope.cancel()
    for step in steps:  # what came late, came
        step["came"] = sorted(scene.arrived.get(step.pop("message"), ()))
    tell("")
    tell(
        "Below 3 it is withdrawn at once. What sank is shown again at 4 only, so that one who comes and goes"
        " is not told by it. They are told whether it is shown or held back, and not how many there are."
    )
    tell("")
    return {"k": K, "condition": TERMS.condition, "otherwise": TERMS.otherwise, "steps": steps}


def faults(levels: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many deliveries of a scene were not made, and how many there were beyond those."""
    lost = sum(len(set(step["to"]) - set(step["came"])) for step in levels["steps"])
    return lost, sum(len(step["came"]) - len(set(step["to"]) & set(step["came"])) for step in levels["steps"])


def outside(traces: Path) -> set[bytes]:
    """Return the names of the filters that the edge broker shows, by the trace of the broker above it."""
    names: set[bytes] = set()
    lines = (traces / f"{ABOVE}.observations.jsonl").read_text().splitlines()
    edge = json.loads((traces / f"{EDGE}.truth.jsonl").read_text().partition("\n")[0])["node"]
    for line in map(json.loads, lines):
        if line["kind"] == "advertised" and line.get("child") == edge:
            names |= {decode_shown(bytes.fromhex(one)).name for one in line["show"]}
            names -= {bytes.fromhex(one) for one in line["withdraw"]}
    return names
