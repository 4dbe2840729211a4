"""The two behaviours of the central system, as published and hardened, each one frozen value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CentralProfile:
    """What server, proxies and users do; the code is the same for both profiles."""

    name: str
    seals_bodies: bool
    """Bodies are sealed under the topic's key; as published, only the outer layer hides them."""
    stretches_topics: bool
    """Guessing a topic costs Argon2id; as published, a subject is a word that a dictionary has."""
    own_pseudonyms: bool
    """Each subscription and publication has a pseudonym of its own; as published, a user has one."""
    wraps_anew: bool
    """The server opens the outer layer and seals each delivery anew; as published, it re-randomises it."""


CENTRAL_PAPER = CentralProfile(
    "paper", seals_bodies=False, stretches_topics=False, own_pseudonyms=False, wraps_anew=False
)
CENTRAL_HARDENED = CentralProfile(
    "hardened", seals_bodies=True, stretches_topics=True, own_pseudonyms=True, wraps_anew=True
)
CENTRAL_PROFILES = {profile.name: profile for profile in (CENTRAL_PAPER, CENTRAL_HARDENED)}
