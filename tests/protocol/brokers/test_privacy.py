"""What a network's profile says of privacy."""

from __future__ import annotations

from itertools import product

import pytest

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.roster import Network
from hushcast_protocol.base.wire import decoder, encode
from hushcast_protocol.brokers.full.group_action import GROUP, PADS
from hushcast_protocol.brokers.privacy import Privacy, read_privacy

FULL = [
    Privacy("full", layers, profile, aggregates)
    for layers, profile, aggregates in product((2, 3, 4), ("hardened", "paper"), (True, False))
]
SIMPLE = [Privacy("clear"), Privacy("community"), Privacy("hash"), Privacy("group")]


@pytest.mark.parametrize("privacy", [*FULL, *SIMPLE], ids=lambda one: one.text)
def test_it_fits_a_network_and_is_read_back(privacy: Privacy) -> None:
    network = Network("one", privacy.text, 3600)
    assert decoder(Network, "network", 200)(encode(network)) == network
    assert read_privacy(privacy.text) == privacy


def test_each_has_a_text_of_its_own() -> None:
    assert len({privacy.text for privacy in FULL + SIMPLE}) == len(FULL) + len(SIMPLE)
    assert Privacy("full").text == "full/3"
    assert Privacy("full", 2, "hardened", aggregates=False).text == "full/2/apart"


@pytest.mark.parametrize("text", ["", "full", "full/1", "full/5", "full/3/", "Clear", "full/3/a", "hardened"])
def test_others_say_nothing(text: str) -> None:
    with pytest.raises(DecodeError):
        read_privacy(text)


def test_layers_as_published_are_pads() -> None:
    assert all(one.action is (PADS if one.profile == "paper" else GROUP) for one in FULL)
