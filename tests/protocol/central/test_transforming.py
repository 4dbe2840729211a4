"""Remembered transformations are what multiplying gives, and no more than so many."""

from __future__ import annotations

import pytest
from core_examples import stream

from hushcast_protocol.base.crypto.group import Scalar, hashed
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.central import token_transformer
from hushcast_protocol.central.rerouting import transformed
from hushcast_protocol.central.token_transformer import Transformer

ONE, OTHER = Scalar.draw(stream(1)), Scalar.draw(stream(2))
POINTS = [hashed(bytes([number])) for number in range(6)]


def test_the_same_again_gives_the_same_for_each_factor() -> None:
    transformer = Transformer()
    for _ in range(2):
        for factor in (ONE, OTHER):
            assert transformer.tokens(factor, POINTS) == tuple(transformed(factor, point) for point in POINTS)
    assert len(transformer) == 2 * len(POINTS)


def test_recurring_tokens_are_not_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    multiplied: list[bytes] = []
    monkeypatch.setattr(
        token_transformer,
        "transformed",
        lambda factor, point: multiplied.append(point) or transformed(factor, point),
    )
    transformer = Transformer(3)
    transformer.tokens(ONE, POINTS[:3])
    transformer.tokens(ONE, POINTS[:3])
    assert multiplied == POINTS[:3]
    transformer.tokens(ONE, POINTS)  # the first three make room
    assert len(transformer) == 3
    transformer.tokens(ONE, POINTS[:1])
    assert multiplied == [*POINTS[:3], *POINTS[3:], POINTS[0]]


def test_what_was_forgotten_is_gone() -> None:
    transformer = Transformer()
    transformer.tokens(ONE, POINTS)
    transformer.forget()
    assert not len(transformer)


def test_points_outside_the_group_are_refused_each_time() -> None:
    transformer = Transformer()
    for _ in range(2):
        with pytest.raises(AuthenticationError):
            transformer.tokens(ONE, [POINTS[0], bytes(32)])
    assert len(transformer) == 1
