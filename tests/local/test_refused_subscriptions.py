"""A subscription that the network does not take ends with its reason; terms are kept with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import trio
from fake_carrier import FakeCarrier, FakeRoute
from fake_daemon import FakeDaemon
from small_network import BEGIN, ONE, until

from hushcast_local.subscription import kept
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.content.topics import Interest
from hushcast_runtime.carriers.carrier import RoutedInterest
from hushcast_runtime.environment import simulated_environment

TERMS: Mapping[str, Any] = {"k": 5, "otherwise": "refuse"}
TOO_FEW = "too few subscribers stand behind it"


def keep(carrier: FakeCarrier, wanted: RoutedInterest) -> FakeRoute:
    """Keep it as a carrier does that knows terms, and finds too few behind some."""
    route = carrier._begun(wanted)
    if wanted.terms == TERMS:
        wanted.refuse(TOO_FEW)
    return route


async def test_what_is_refused_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeCarrier, "keep", keep)
    daemon = FakeDaemon(tmp_path / "control.sock", simulated_environment(1, BEGIN))
    async with trio.open_nursery() as nursery:
        await daemon.start(nursery)
        with pytest.raises(Refusal, match=TOO_FEW):
            await daemon.service.subscribe(Interest(ONE), terms=TERMS)
        await until(lambda: not daemon.service.subscriptions())
        await trio.sleep(60)
        assert await kept(daemon.store) == []
        (await daemon.service.subscribe(Interest(ONE))).close()
        daemon.stop()


async def test_terms_are_kept_and_are_not_changed_in_passing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeCarrier, "keep", keep)
    daemon = FakeDaemon(tmp_path / "control.sock", simulated_environment(1, BEGIN))
    async with trio.open_nursery() as nursery:
        await daemon.start(nursery)
        terms = {"k": 2, "otherwise": "wait"}
        (await daemon.service.subscribe(Interest(ONE), terms=terms)).close()
        (await daemon.service.subscribe(Interest(ONE))).close()  # whoever asks for none takes what there is
        with pytest.raises(Refusal, match="other terms"):
            await daemon.service.subscribe(Interest(ONE), terms=TERMS)
        assert [held[3] for held in await kept(daemon.store)] == [terms]
        daemon.stop()
        await until(lambda: not daemon.socket.exists())
        await daemon.start(nursery)
        assert [held.terms for held in daemon.service.subscriber.subscriptions] == [terms]
        daemon.stop()
