"""The catalogue of attacks: what each names, and what it is asked of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import DataFrame

from hushcast_analytics.adversaries import AdversaryView
from hushcast_analytics.attacks.host_attacks import box_presence, detach, survivors
from hushcast_analytics.attacks.linkage_attacks import renewal_times, second_device, shared_mailbox
from hushcast_analytics.attacks.presence_attacks import presence
from hushcast_analytics.attacks.publisher_attacks import first_spy, origin_choice, timing
from hushcast_analytics.attacks.structure_attacks import install_depth, parent_of_interior, predecessor
from hushcast_analytics.attacks.subscription_attacks import dictionary, statistical_disclosure
from hushcast_analytics.attacks.traffic_attacks import active_scan, traffic_share, trail_popcount

Target = Literal["publisher", "subscriber", "subscription"]
Subject = Literal["message", "author", "topic", "link", "participant"]


@dataclass(frozen=True)
class Attack:
    """An attack: `subject` is what its trials are (`trials`), `target` what it takes from people.

    `rule` is absent for the trained attack, which needs other trials to learn from.
    """

    name: str
    target: Target
    subject: Subject
    rule: Callable[[AdversaryView], DataFrame] | None


ATTACKS = {
    attack.name: attack
    for attack in (
        Attack("first-spy", "publisher", "message", first_spy),
        Attack("origin-choice", "publisher", "author", origin_choice),
        Attack("timing", "publisher", "author", timing),
        Attack("parent-of-interior", "subscriber", "topic", parent_of_interior),
        Attack("install-depth", "subscriber", "topic", install_depth),
        Attack("trail-popcount", "subscriber", "topic", trail_popcount),
        Attack("predecessor", "subscriber", "topic", predecessor),
        Attack("traffic-share", "subscriber", "topic", traffic_share),
        Attack("trained", "subscriber", "topic", None),
        Attack("active-scan", "subscriber", "topic", active_scan),
        Attack("presence", "subscriber", "topic", presence),
        Attack("box-presence", "subscriber", "topic", box_presence),
        Attack("detach", "subscriber", "topic", detach),
        Attack("renewal-times", "subscriber", "link", renewal_times),
        Attack("shared-mailbox", "subscriber", "link", shared_mailbox),
        Attack("second-device", "subscriber", "link", second_device),
        Attack("survivors", "subscriber", "link", survivors),
        Attack("dictionary", "subscription", "participant", dictionary),
        Attack("statistical-disclosure", "subscription", "participant", statistical_disclosure),
    )
}
"""By name, in the order of the report."""
