"""What brokers may learn, as a network says it in its `profile`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.brokers.full.group_action import GROUP, PADS, GroupAction
from hushcast_protocol.brokers.full.layers import MAX_LAYERS, MIN_LAYERS

PrivacyModel = Literal["clear", "community", "full", "hash", "group"]
"""`hash` and `group` are the two approaches that the paper finds wanting (IV), for simulated networks alone.

Under `hash` brokers route by what `clear` has them see of whole topics, which anybody can hash; under `group`
by what is sealed as in a community, whose one key never changes.
"""
PrivacyProfile = Literal["hardened", "paper"]

DEFAULT_LAYERS = 3
DEFAULT_AGGREGATION: Mapping[PrivacyProfile, bool] = {"hardened": False, "paper": True}
"""Where brokers compare their children's words, one that makes up a child reads all of them."""
_ENDS: dict[tuple[PrivacyProfile, bool], str] = {
    # A network's profile has 16 characters at most.
    ("hardened", True): "",
    ("hardened", False): "/apart",
    ("paper", True): "/paper",
    ("paper", False): "/paper/a",
}


@dataclass(frozen=True)
class Privacy:
    """One network's privacy. All but the model matters under `full` alone."""

    model: PrivacyModel = "clear"
    layers: int = DEFAULT_LAYERS
    """For how many of its nearest ancestors a node puts a layer on."""
    profile: PrivacyProfile = "hardened"
    aggregates: bool = True
    """Brokers learn which of their children's items are of one word, and pass one of these on."""

    @property
    def text(self) -> str:
        """What the network's `profile` says."""
        if self.model != "full":
            return self.model
        return f"full/{self.layers}{_ENDS[self.profile, self.aggregates]}"

    @property
    def is_sealed(self) -> bool:
        """Whether brokers see what is sealed to a community, and its members what is in it."""
        return self.model in ("community", "group")

    @property
    def can_keep(self) -> bool:
        """Whether a root can show to who comes later what was published.

        What is sealed to an epoch of a community opens for those alone who were in it; and the schemes as
        published keep nothing.
        """
        return self.model == "clear" or (self.model == "full" and self.profile != "paper")

    @property
    def action(self) -> GroupAction:
        """How layers are put on."""
        return PADS if self.profile == "paper" else GROUP


_ALL = {
    one.text: one
    for one in (
        *(Privacy(model) for model in get_args(PrivacyModel) if model != "full"),
        *(
            Privacy("full", layers, profile, aggregates)
            for layers in range(MIN_LAYERS, MAX_LAYERS + 1)
            for profile, aggregates in _ENDS
        ),
    )
}


def read_privacy(text: str) -> Privacy:
    """Return what a network's `profile` says; raise `DecodeError` where it says nothing."""
    found = _ALL.get(text)
    if found is None:
        raise DecodeError("a network's profile is not one that brokers know")
    return found
