"""Users of a proxy ask for the same tokens thousands of times, so that one publication takes seconds."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from small_central import OTHER, TOPIC, hears, small_central
from small_network import until
from steps import one_step

from hushcast_central.server import publications
from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.central.pseudonym_register import PseudonymRecord, PseudonymRegister
from hushcast_runtime.storage.spool import Spool

PSEUDONYMS, TOKENS = 4096, 16
TODAY = 1000


def name(number: int) -> bytes:
    return digest(Domain.PROOF, number.to_bytes(8, "big"))


@pytest.mark.slow
def test_a_publication_that_thousands_want_is_matched_in_short_steps() -> None:
    register = PseudonymRegister(Calendar(60), bytes(16))
    tokens = tuple(name(number) for number in range(TOKENS))
    for number in range(PSEUDONYMS):
        register.load(name(number), PseudonymRecord(bytes(32), TODAY, bytes(32), 1, bytes(16), False, tokens))
    with one_step():
        found = register.match(tokens)
    assert len(found) == PSEUDONYMS
    with one_step():
        assert len(register.wanting(found[: publications.PLACED_AT_ONCE], tokens)) == 512


async def test_everybody_hears_once_what_was_placed_in_several_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publications, "PLACED_AT_ONCE", 2)
    async with small_central() as network:
        ears = [await network.subscriber() for _ in range(5)]
        elsewhere = await network.subscriber(OTHER)
        message = network.message()
        verdicts: list[Any] = []

        async def publish() -> None:
            verdicts.append(await network.publish(message, TOPIC))

        async with trio.open_nursery() as nursery:  # the same at once: neither hears of it too early
            nursery.start_soon(publish)
            nursery.start_soon(publish)
        assert verdicts == ["accepted", "accepted"]
        for ear in ears:
            await until(hears(ear, message))
        await until(lambda: network.server.daemon.status()["deliveries_waiting"] == 0)
        assert [len(ear.person.heard) for ear in ears] == [1] * 5
        assert elsewhere.person.heard == []
        assert network.count("publications_repeated") == 1


async def test_a_publication_is_known_once_all_its_places_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is killed before has promised nothing, and takes it again from the beginning."""
    monkeypatch.setattr(publications, "PLACED_AT_ONCE", 2)
    put = Spool.put
    placed: list[tuple[int, list[str]]] = []

    def watched(spool: Spool, sends: Any, *settled: Any) -> Any:
        placed.append((len(sends), [change.kind for change in settled]))
        return put(spool, sends, *settled)

    async with small_central() as network:
        for _ in range(5):
            await network.subscriber()
        monkeypatch.setattr(Spool, "put", watched)
        assert await network.publish(network.message()) == "accepted"
        assert await network.publish(network.message(), OTHER) == "accepted"
    with_it = ["publication", "kept", "kept-message"]
    assert placed == [(2, []), (2, []), (1, with_it), (0, with_it)]
