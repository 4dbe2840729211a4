"""Measures a gateway with each number of clients, and tells people and programs what came of it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

import trio

from hushcast_cli.choices import Choices
from hushcast_cli.gateways.gateway_load import LoadFigures, LoadPlan, check_plan, endpoint_of, put_load
from hushcast_cli.output import json_line, text_line, write
from hushcast_protocol.base.errors import UsageError


def measure(choices: Choices, at: str, counts: tuple[str, str], given: Mapping[str, Any]) -> None:
    """Measure each pair of counts, and print a line for each; raise `UsageError` or `TransportError`."""
    reservations, purpose = given["reservations"], given["purpose"]
    if bool(reservations) != bool(purpose):
        raise UsageError("--reservations and --purpose go together: what is reserved is for a purpose")
    endpoint = endpoint_of(at)
    publishers, subscribers = (
        _counts(name, text) for name, text in zip(("--publishers", "--subscribers"), counts, strict=True)
    )
    plans = [
        LoadPlan(endpoint, sources, sinks, given["messages"], given["size"], reservations, purpose or "")
        for sources in publishers
        for sinks in subscribers
    ]
    for plan in plans:
        check_plan(plan)
    for plan in plans:
        figures = trio.run(put_load, plan, secrets.token_hex(4))
        write((_as_json if choices.json else _as_text)(plan, figures))


def _counts(option: str, text: str) -> list[int]:
    """Return the numbers of a list; raise `UsageError`."""
    found = [int(one) if one.isascii() and one.isdecimal() else 0 for one in text.split(",")]
    if min(found) < 1:
        raise UsageError(f"{option}: {text!r} is no list of numbers from 1 on, as 1,10,100")
    return found


def _as_json(plan: LoadPlan, figures: LoadFigures) -> bytes:
    clients = {"publishers": plan.publishers, "subscribers": plan.subscribers}
    came = {"due": figures.due, "came": figures.came, "seconds": round(figures.seconds, 3)}
    rate = {"a_second": round(figures.came / figures.seconds, 1)}
    delays = {"median_ms": round(figures.delay(0.5), 2), "p99_ms": round(figures.delay(0.99), 2)}
    return json_line({**clients, "reservations": plan.reservations, **came, **rate, **delays})


def _as_text(plan: LoadPlan, figures: LoadFigures) -> bytes:
    rate = figures.came / figures.seconds
    return text_line(
        f"{plan.publishers:,} publishers, {plan.subscribers:,} subscribers: {figures.came:,} messages, "
        f"{rate:,.0f} a second, {figures.delay(0.5):.1f} ms in the median, {figures.delay(0.99):.1f} at most "
        "for 99 %"
    )
