"""Follows a located feed and prints what holds, and what does not; lists what is kept."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

import trio

from hushcast.control_messages import as_text
from hushcast.daemon import Daemon
from hushcast.events import Disconnected, Lost, Reconnected
from hushcast_cli.awaited_progress import shown_when_slow
from hushcast_cli.exits import Failure
from hushcast_cli.messages.message_listener import end_with_reader, print_data
from hushcast_cli.messages.printers import loss
from hushcast_cli.output import json_line, note, text_line
from hushcast_located.meanings import MEANING
from hushcast_located.subscriber.environment import SubscriberEnvironment
from hushcast_located.subscriber.events import (
    Event,
    FeedMessage,
    Interval,
    Lapsed,
    OwnerKeyChange,
    Unanswered,
    Uncovered,
    WeightsChange,
)
from hushcast_located.subscriber.feed import Feed
from hushcast_located.subscriber.feed_subscription import (
    FeedMove,
    check_known,
    open_feed,
    read_offer_given,
    read_wanted,
    usual_folder,
)
from hushcast_located.subscriber.subscription_files import FeedRecord, fresh_name, look, names
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.spatial.feed_events import FeedTrouble, RequestAccepted
from hushcast_protocol.spatial.located_requests import DAY
from hushcast_protocol.spatial.offer import read_offer
from hushcast_protocol.spatial.owner_keys import OwnerKeys
from hushcast_protocol.spatial.places import degrees_of
from hushcast_runtime.wording import counted

ALPHA, THRESHOLD = 0.5, 0.7


class FeedPrinter(Protocol):
    """Tells what a feed tells."""

    def subscribed(self, name: str, nodes: int) -> bytes:
        """Return what tells that answers reach the daemon from now on."""

    def event(self, event: Event) -> bytes:
        """Return what tells of an event."""


_ALONE: dict[type, str] = {
    RequestAccepted: "accepted",
    Lapsed: "lapsed",
    Disconnected: "disconnected",
    Reconnected: "reconnected",
}
"""Events that have a name and nothing else."""


class JsonFeedPrinter:
    """Prints for programs: one object a line; an interval stands behind its messages."""

    def subscribed(self, name: str, nodes: int) -> bytes:
        """Return the contract's `subscribed` object."""
        return json_line({"event": "subscribed", "name": name, "nodes": nodes})

    def event(self, event: Event) -> bytes:
        """Return an object, or for an interval those of its messages, too."""
        if isinstance(event, Interval):
            lines = [json_line(_told(one, event.number)) for one in event.messages]
            told = {"number": event.number, "start": event.start, "seconds": event.seconds}
            marks = {"messages": len(event.messages), "late": event.is_late, "complete": event.is_complete}
            return b"".join([*lines, json_line({"event": "interval", **told, **marks})])
        if isinstance(event, FeedTrouble):
            since = {} if event.since is None else {"since": event.since, "until": event.until}
            between = {"first": event.first, "last": event.last}
            return json_line({"event": "problem", "problem": event.problem, **between, **since})
        if isinstance(event, WeightsChange):
            return json_line({"event": "weights", "number": event.number, "version": event.version})
        if isinstance(event, OwnerKeyChange):
            return json_line({"event": "key", "number": event.number, "owner": event.owner})
        if isinstance(event, Unanswered):
            return json_line({"event": "unanswered", "seconds": round(event.seconds, 1)})
        if isinstance(event, Uncovered):
            return json_line({"event": "uncovered", "number": event.number, "mended": event.is_mended})
        if isinstance(event, Lost):
            return json_line({"event": "lost", "count": event.count})
        return json_line({"event": _ALONE[type(event)]})


class TextFeedPrinter:
    """Prints for people: messages on standard output, all else on standard error."""

    def subscribed(self, name: str, nodes: int) -> bytes:
        """Tell it on standard error."""
        note(f"subscribed, and kept as {name}: {counted(nodes, 'node routes', 'nodes route')} to this daemon")
        return b""

    def event(self, event: Event) -> bytes:
        """Return lines of messages; tell all else on standard error."""
        if isinstance(event, Interval):
            if not event.is_complete:
                note(f"interval {event.number}: something may be missing: the provider was told too little")
            lines = (
                text_line(f"{one.id}  {one.latitude:.5f} {one.longitude:.5f}  {one.text}")
                for one in event.messages
            )
            return b"".join(lines)
        note(_said(event))
        return b""


def printer_for(json: bool) -> FeedPrinter:
    """Return the printer for programs, or for people."""
    return JsonFeedPrinter() if json else TextFeedPrinter()


def _told(message: FeedMessage, number: int) -> dict[str, Any]:
    text, encoding = as_text(message.payload)
    where = {"lat": message.latitude, "lon": message.longitude}
    return {
        "event": "message",
        "id": message.id,
        **where,
        "text": text,
        "encoding": encoding,
        "number": number,
    }


def _said(event: Event) -> str:
    if isinstance(event, FeedTrouble):
        return f"problem: {_problem(event)}"
    if isinstance(event, WeightsChange):
        return f"from interval {event.number} on the owner's weights are others: version {event.version}"
    if isinstance(event, OwnerKeyChange):
        return f"from interval {event.number} on another key of the owner signs: {event.owner}"
    if isinstance(event, Unanswered):
        return f"no provider has answered for {event.seconds:.0f} s: waiting, and asking now and then"
    if isinstance(event, Lapsed):
        return "it had ended at the provider: it is asked anew; what came meanwhile, nothing says"
    if isinstance(event, Uncovered):
        then = (
            "it will be told more" if event.is_mended else "nothing does any more: subscribe with less blur"
        )
        return f"from interval {event.number} on the provider is told too little by new weights: {then}"
    if isinstance(event, Lost):
        return f"lost: {loss(event)}: intervals may be told as missing"
    if isinstance(event, Disconnected):
        return "the daemon closed the connection: it stopped or was restarted: waiting for it"
    return (
        "the daemon is back" if isinstance(event, Reconnected) else "the provider has taken the subscription"
    )


def _utc(moment: int) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _problem(event: FeedTrouble) -> str:
    if event.since is not None and event.until is not None:
        where = f", from {_utc(event.since)} to {_utc(event.until)}"
    elif event.first is None:
        where = ""
    elif event.first == event.last:
        where = f", interval {event.first}"
    else:
        where = f", intervals {event.first} to {event.last}"
    return f"{event.problem}{where} ({MEANING[event.problem]})"


def open_one(name: str | None, given: Mapping[str, Any]) -> Callable[[Daemon], Feed]:
    """Return what opens the feed that a command asks for; raise `UsageError` for what was typed."""
    folder = usual_folder()
    if given["provider"] is None:
        assert name is not None
        check_known(name)
        change = FeedMove(given["at"], given["keywords"] or "")
        return lambda daemon: open_feed(daemon, None, name, folder, SubscriberEnvironment(tell=note), change)
    shares = {
        "keywords": [given["keywords"] or ""],
        "alpha": ALPHA if given["alpha"] is None else given["alpha"],
        "threshold": THRESHOLD if given["threshold"] is None else given["threshold"],
    }
    offer = read_offer_given(given["provider"])
    blur = given["blur"], given["blur_keywords"]
    wanted = read_wanted(offer, given["at"], shares, blur, given["owner"])
    return lambda daemon: open_feed(
        daemon, wanted, name or fresh_name(folder), folder, SubscriberEnvironment(tell=note)
    )


async def follow(feed: Feed, count: int | None, stops: Collection[str], printer: FeedPrinter) -> None:
    """Print events until `count` messages have come, or a problem that the command is to end at."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(end_with_reader)
        async with shown_when_slow("waiting until relays or a server route to this daemon"):
            await feed.__aenter__()
        try:
            await print_data(printer.subscribed(feed.name, feed.nodes))
            end = await _print_all(feed, count, stops, printer)
        finally:
            await feed.__aexit__(*sys.exc_info())
        nursery.cancel_scope.cancel()
    if isinstance(end, FeedTrouble):
        raise Refusal(f"stopped at a problem: {_problem(end)}")
    if count is not None and end is None:
        raise Failure("the subscription was ended in the daemon")


async def _print_all(
    feed: Feed, count: int | None, stops: Collection[str], printer: FeedPrinter
) -> Event | None:
    """Return the event that it ends with, `None` where the subscription ended in the daemon."""
    printed = 0
    async for event in feed:
        await print_data(printer.event(event))
        if isinstance(event, FeedTrouble) and event.problem in stops:
            return event
        if isinstance(event, Interval):
            printed += len(event.messages)
            if count is not None and printed >= count:
                return event
    note("the subscription was ended in the daemon")
    return None


def listed() -> Iterator[tuple[dict[str, Any], str]]:
    """Yield what is told of each subscription that is kept, to programs and to people."""
    folder = usual_folder()
    for name in names(folder):
        kept = look(folder, name)
        if kept is None:
            yield {"name": name, "damaged": True}, f"{name}  (cannot be read)"
        else:
            yield _kept(name, kept)


def _owner(kept: FeedRecord) -> str:
    """Return the key by which the owner signs, or did until it was revoked."""
    heard = () if kept.followed is None else kept.followed.keys
    return OwnerKeys.read(read_offer(kept.offer).owner, heard).newest.hex()


def _kept(name: str, kept: FeedRecord) -> tuple[dict[str, Any], str]:
    latitude, longitude = degrees_of(kept.wanted.place)
    blur = None if kept.blur is None else {"km": kept.blur.kilometres, "keywords": kept.blur.words}
    until = datetime.fromtimestamp(kept.until * DAY, UTC).strftime("%Y-%m-%d") if kept.until else None
    last = None if kept.followed is None else kept.followed.at
    told = {
        "name": name,
        "lat": latitude,
        "lon": longitude,
        "keywords": list(kept.wanted.words),
        "alpha": kept.wanted.alpha / 1000,
        "threshold": kept.wanted.threshold / 1000,
        "blur": blur,
        "owner": _owner(kept),
        "taken": kept.taken == kept.number > 0,
        "until": until,
        "interval": last,
    }
    state = f"taken, until {until}" if told["taken"] else "not yet taken"
    heard = f", interval {last}" if last else ""
    words = ",".join(kept.wanted.words)
    return told, f"{name}  {latitude:.5f},{longitude:.5f}  {words}  ({state}{heard})"
