"""Asking a gateway as whoever runs it does."""

from __future__ import annotations

import msgspec
from memory_gateway import Gateway

from hushcast_gateway.operators.operator_answers import OperatorAnswers
from hushcast_gateway.operators.questions import (
    Line,
    Question,
)


async def ask(gateway: Gateway, question: Question) -> list[Line]:
    """Return the answer as it comes by the socket."""
    asked = msgspec.json.encode(question)
    return [msgspec.json.decode(one, type=Line) async for one in OperatorAnswers(gateway.state).answer(asked)]  # type: ignore[arg-type]
