"""A stranger fills a relay with leases of one day, so that it stands still when that is over.

All of a day lapsed in one step, at a moment that everybody knows, and the memory of its table was freed in
it: a tenth of a second of a processor.
"""

from __future__ import annotations

from random import Random

import pytest
from core_examples import CALENDAR, DAY
from steps import one_step

from hushcast_protocol.content.hops import Hop
from hushcast_protocol.overlay.hops import relay_hop
from hushcast_protocol.overlay.leases import (
    ELEMENTS_A_LEASE,
    MAX_LEASES,
    MAX_TOMBSTONES,
    Lease,
    LeaseBook,
)


def leases_of_a_day(draw: Random, hops: list[Hop]) -> list[Lease]:
    return [
        Lease(
            number.to_bytes(16, "big"),
            DAY,
            hops[number % len(hops)],
            None,
            tuple(draw.randbytes(16) for _ in range(ELEMENTS_A_LEASE)),
            draw.randbytes(16),
            draw.randbytes(16),
        )
        for number in range(MAX_LEASES)
    ]


@pytest.mark.slow
def test_a_full_day_of_leases_lapses_piece_by_piece() -> None:
    draw = Random(1)
    book = LeaseBook(draw.randbytes(32), CALENDAR, draw.randbytes(32))
    hops = [relay_hop(draw.randbytes(32)) for _ in range(4096)]
    for lease in leases_of_a_day(draw, hops):
        book.restore(lease)
    for number in range(MAX_TOMBSTONES):
        book.restore_tombstone((MAX_LEASES + number).to_bytes(16, "big"), DAY)
    pieces = book.lapse(CALENDAR.lapse(DAY))
    count, is_over = 0, False
    while not is_over:
        with one_step():
            gone = next(pieces, None)
        is_over = gone is None
        count += len(gone or ())
    assert count == MAX_LEASES + MAX_TOMBSTONES
    assert len(book) == 0
    assert not book.tombstones()
    assert book.table(DAY) is None
