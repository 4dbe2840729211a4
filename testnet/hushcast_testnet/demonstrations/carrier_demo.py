"""Demonstrations of all carriers, on a private Tor network: what is shown, and its figures."""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import Any

from hushcast.keys import new_link
from hushcast_runtime.wording import counted
from hushcast_testnet.demonstrations.course import Course, CourseListener, Letter, Progress, Tell, run
from hushcast_testnet.demonstrations.levels_scene import faults, show_levels
from hushcast_testnet.inventory import CarrierName, Transport
from hushcast_testnet.layouts import BrokersModel
from hushcast_testnet.tor.distance import NEAR, Distance

TOPICS = ("weather", "chess")
SUBSCRIBERS = (
    CourseListener("client-1", "weather"),
    CourseListener("client-2", "chess"),
    CourseListener("relay-3", "weather"),
)

_UNDER_FULL = (
    "Brokers passed on what they cannot read: items under the keys of three of them in a row, and labels in",
    "their place on the way down. What those who work together read all the same: docs/threat-model.md.",
    "",
    "Next: hushcast testnet up --dir /tmp/hush --carrier brokers --privacy full && hushcast testnet watch",
)
_IN_COMMUNITY = (
    "Brokers and daemons of one community matched what they had sealed to each other: nobody outside reads a",
    "filter or a message's words, and whoever is expelled reads nothing from then on: docs/brokers.md.",
    "",
    "Next: hushcast testnet up --dir /tmp/hush --carrier brokers --privacy community; hushcast testnet watch",
)
_ENDING: dict[CarrierName, tuple[str, ...]] = {
    "overlay": (
        "Relays passed on sealed bodies by tokens that they cannot read: what is told of them is from their",
        "traces. What colluding relays can infer all the same, and how often: docs/attack-lab.md.",
        "",
        "Next: hushcast testnet up --dir /tmp/hush && hushcast testnet watch",
    ),
    "central": (
        "The server matched tokens that it cannot read, for pseudonyms that it cannot place: what is told of",
        "it and its proxies is from their traces. What they learn together, and how often: docs/carriers.md.",
        "",
        "Next: hushcast testnet up --dir /tmp/hush --carrier central && hushcast testnet watch",
    ),
    "brokers": (
        "Brokers matched hashes of topics and labels, and plain numbers. Bodies open with a topic's name or",
        "link alone. What is wanted with --k is shown to them while enough want it: docs/brokers.md.",
        "",
        "Next: hushcast testnet up --dir /tmp/hush --carrier brokers && hushcast testnet watch",
    ),
}


def overlay_course(
    nodes: int, clients: int, publishers: tuple[str, ...], publications: int, between: float
) -> Course:
    """Return a course on the overlay, with two topics and three subscriptions."""
    letters = tuple(Letter(topic) for topic in TOPICS)
    topics = {topic: topic for topic in TOPICS}
    return Course(nodes, clients, publishers, publications, between, topics, SUBSCRIBERS, letters)


def central_course(transport: Transport = "tor") -> Course:
    """Return the course on the central system: an open topic, one with a number, and a private one."""
    topics = {
        "weather": "weather",
        "temperature": new_link("temperature", ["celsius:-40..60:0.5"]),
        "diary": new_link("diary", private=True),
    }
    listeners = (
        CourseListener("client-1", "weather"),
        CourseListener("client-2", "weather"),
        CourseListener("client-3", "temperature", "celsius in [-40, 0]"),
        CourseListener("client-4", "temperature", "celsius in [18, 60]"),
        CourseListener("client-5", "diary"),
        CourseListener("client-1", "diary"),
    )
    letters = (
        Letter("weather"),
        Letter("temperature", "celsius=-12.5"),
        Letter("diary"),
        Letter("weather"),
        Letter("temperature", "celsius=21"),
        Letter("diary"),
        Letter("weather"),
        Letter("temperature", "celsius=10.5"),
    )
    publishers = ("client-2", "client-5", "client-6")
    return Course(6, None, publishers, 24, 0.5, topics, listeners, letters, "central", transport)


def brokers_course(transport: Transport = "tor", privacy: BrokersModel = "clear") -> Course:
    """Return the course over brokers: the central system's, at all edge brokers, under `clear` with k."""
    course = central_course(transport)
    listeners = (
        CourseListener("client-1", "weather"),
        CourseListener("client-5", "weather"),
        CourseListener("client-3", "temperature", "celsius in [-40, 0]"),
        CourseListener("client-6", "temperature", "celsius in [18, 60]"),
        CourseListener("client-5", "diary"),
        CourseListener("client-1", "diary"),
    )
    scene = show_levels if privacy == "clear" else None
    return replace(course, listeners=listeners, carrier="brokers", privacy=privacy, scene=scene)


def demo(
    progress: Progress,
    tell: Tell,
    carrier: CarrierName = "overlay",
    privacy: BrokersModel = "clear",
    distance: Distance = NEAR,
) -> dict[str, Any]:
    """Run a carrier's demonstration and leave nothing running; return its figures.

    `tell` hears what people are to read, a line at a time; `privacy` is what brokers learn; at a `distance`
    connections between tors take that long.

    Raises a `HushcastError` if the network does not come up; whether anything was lost is in the figures.
    """
    if carrier == "overlay":
        course = overlay_course(10, 2, ("relay-1", "relay-2", "client-1"), 20, 0.5)
    else:
        course = central_course() if carrier == "central" else brokers_course(privacy=privacy)
    outcome = run(replace(course, distance=distance), progress, tell)
    delivered = [delay for delay in outcome.delays if delay is not None]
    lost, extra = faults(outcome.scene) if outcome.scene else (0, 0)
    tell(f"{len(delivered)} of {counted(len(outcome.delays), 'delivery', 'deliveries')} were made.")
    of_model = {"community": _IN_COMMUNITY, "full": _UNDER_FULL}
    for line in of_model.get(privacy, _ENDING[carrier]):
        tell(line)
    return {
        "transport": course.transport,
        "distance": distance.ms,
        "nodes": course.nodes,
        "published": outcome.published,
        "delivered": len(delivered),
        "lost": len(outcome.delays) - len(delivered) + lost,
        "extra": outcome.extra + extra,
        "seconds": {
            "tor_ready": round(outcome.ready, 1),
            "subscribe": round(outcome.subscribed, 1),
            "deliver_p50": round(statistics.median(delivered), 3) if delivered else None,
        },
        **({"levels": outcome.scene} if outcome.scene else {}),
    }
