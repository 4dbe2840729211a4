"""Links sealed under a password: they come out as they went in, and under no other password."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.base.crypto.secrets import TopicSecret
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.content.topics import make_topic, write_link
from hushcast_protocol.devices import carried_links
from hushcast_protocol.devices.carried_links import CarriedLink, open_links, seal_links

RANDOMNESS = random.Random(1).randbytes
PASSWORD = "correct horse"
FAMILY = write_link(make_topic("family", ["kind"], TopicSecret(bytes(range(32)))))
LINKS = (CarriedLink(FAMILY, "kind = fire"), CarriedLink(FAMILY, "", {"k": 5}))


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """A guess is cheap here, but where its price is what is tested."""
    if "price" not in request.node.name:
        monkeypatch.setattr(carried_links, "_OPERATIONS", 1)
        monkeypatch.setattr(carried_links, "_MEMORY", 8192)


@pytest.mark.slow
def test_links_come_out_as_they_went_in_at_the_full_price() -> None:
    sealed = seal_links(LINKS, PASSWORD, RANDOMNESS)
    assert open_links(sealed, PASSWORD) == LINKS
    assert carried_links._MEMORY >= 256 * 1024 * 1024


def test_nothing_of_a_link_shows() -> None:
    sealed = seal_links(LINKS, PASSWORD, RANDOMNESS)
    assert b"family" not in sealed
    assert b"fire" not in sealed
    assert "family" not in repr(LINKS)
    assert FAMILY not in repr(LINKS)
    assert LINKS[0].interest().topic.name == "family"


def test_the_size_tells_the_number_of_links_to_some_thirty() -> None:
    sizes = {len(seal_links(LINKS * count, PASSWORD, RANDOMNESS)) for count in range(15)}
    assert len(sizes) == 1


@pytest.mark.parametrize("password", ["correct horsf", "correct hors", "correct horse "])
def test_another_password_opens_nothing(password: str) -> None:
    with pytest.raises(UsageError, match="another one, or the file was changed"):
        open_links(seal_links(LINKS, PASSWORD, RANDOMNESS), password)


@pytest.mark.parametrize("password", ["", "seven77", "x" * 1025])
def test_a_password_that_is_guessed_at_once_is_refused(password: str) -> None:
    with pytest.raises(UsageError, match="8 characters"):
        seal_links(LINKS, password, RANDOMNESS)


@given(st.data())
def test_whatever_is_changed_or_cut_off_is_found_out(data: st.DataObject) -> None:
    sealed = seal_links(LINKS, PASSWORD, RANDOMNESS)
    place = data.draw(st.integers(0, len(sealed) - 1))
    flipped = bytearray(sealed)
    flipped[place] ^= 1 << data.draw(st.integers(0, 7))
    for broken in (bytes(flipped), sealed[:place], sealed + b"x"):
        with pytest.raises(UsageError):
            open_links(broken, PASSWORD)


def test_what_is_no_such_file_is_said_to_be_none() -> None:
    for data in (b"", b"hushcast backup 1\n", b"hushcast links 2\n" + bytes(100), b"x" * 100):
        with pytest.raises(UsageError, match="device export"):
            open_links(data, PASSWORD)
