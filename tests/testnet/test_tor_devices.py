"""Three devices of one person over a private Tor network, one of which is lost: the short form of a soak."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hushcast_local.devices.circle_records import OwnCircle
from hushcast_protocol.base.crypto.secrets import AgreementKey, Seed
from hushcast_protocol.devices.circle_secrets import draw_secret, first_keys
from hushcast_protocol.devices.shared_entries import DeviceValue
from hushcast_testnet import testnet
from soak.devices import opened_with, play_devices

EPOCH_SECONDS = 10


@pytest.fixture
def net(running_testnet: Any, tmp_path: Path) -> Iterator[Any]:
    with running_testnet(tmp_path, 3, 4, "tor", EPOCH_SECONDS) as running:
        yield running


def test_what_a_disk_opens_is_found() -> None:
    made = OwnCircle(Seed.draw(os.urandom), AgreementKey.draw(os.urandom), first_keys(os.urandom))
    made.state.write(made.seed, DeviceValue("one", made.agreement.public()))
    living = made.state.living()
    made.change, made.keys = draw_secret(made.seed, made.keys, living, frozenset(), os.urandom)
    assert opened_with(made, made, 1) == 3, "the topic, a beat, and the new secret"
    other = OwnCircle(Seed.draw(os.urandom), AgreementKey.draw(os.urandom), first_keys(os.urandom))
    assert opened_with(other, made, 1) == 0


@pytest.mark.tor
@pytest.mark.processes
async def test_devices_hold_the_same_show_once_and_lose_one_that_learns_nothing(
    net: Any, tmp_path: Path
) -> None:
    described = testnet.load(net.directory)
    figures = await play_devices(described, tmp_path / "taken", 2, seed=3, progress=print, whole=False)
    assert figures.problems == []
    assert (figures.twice, figures.missing, figures.opened) == (0, 0, 0)
    assert figures.rounds == 2
    assert figures.kills >= 1
    assert figures.shown >= 1
