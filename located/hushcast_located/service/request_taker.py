"""Takes requests from strangers, and answers those that were taken: nobody else hears anything."""

from __future__ import annotations

from dataclasses import dataclass, field

import hushcast
from hushcast_located.paced_publication import send
from hushcast_located.service.provider_store import ProviderStore
from hushcast_protocol.base.errors import PeerError, UsageError
from hushcast_protocol.content.topics import parse_topic
from hushcast_protocol.spatial.located_requests import (
    AskTable,
    LocatedRequest,
    RequestConfirmation,
    RequestOpener,
    SubscribeRequest,
    WithdrawRequest,
)
from hushcast_protocol.spatial.subscription_register import RegisteredSubscription, RequestVerdict
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.logs import log

MAX_TABLES_AN_HOUR = 60  # sent; each may be 40 messages, for the price of one stamp
_HOUR = 3600.0  # seconds


_COUNTED = {
    RequestVerdict.TAKEN: "requests_taken",
    RequestVerdict.AGAIN: "requests_again",
    RequestVerdict.OLD: "requests_old",
    RequestVerdict.DAY: "requests_late",
    RequestVerdict.FULL: "requests_full",
}


@dataclass
class RequestTaker:
    """Reads the topic that requests come on."""

    link: str
    opening: RequestOpener
    shelf: ProviderStore
    env: Environment
    counters: Counters
    _hour: int = field(default=0, init=False)
    _tables: int = field(default=0, init=False)

    async def run(self, daemon: hushcast.Daemon) -> None:
        """Take what comes until cancelled; what is acknowledged is on disk, and its answer in the outbox."""
        async with daemon.subscribe(self.link, acknowledge="manual") as messages:
            log.info("requests are taken")
            async for message in messages:
                request = self._opened(message.payload)
                if isinstance(request, AskTable):
                    await self._send_table(daemon, request)
                elif request is not None:
                    await self._change(daemon, request)
                try:
                    await messages.acknowledge(message)
                except hushcast.Refusal:  # the subscription was ended, and is begun anew
                    continue

    def _opened(self, payload: bytes) -> LocatedRequest | None:
        try:
            request = self.opening.open(payload, self.shelf.today)
            if isinstance(request, SubscribeRequest | AskTable):
                _check_private(request.answers)
        except (PeerError, UsageError):
            self.counters.add("requests_refused")
            return None
        return request

    async def _change(self, daemon: hushcast.Daemon, request: SubscribeRequest | WithdrawRequest) -> None:
        shelf = self.shelf
        verdict = shelf.register.take(request, shelf.today, shelf.newest)
        self.counters.add(_COUNTED[verdict])
        if verdict is RequestVerdict.TAKEN:
            await shelf.keep(request.name)
        record = shelf.register.get(request.name)
        if verdict in (RequestVerdict.TAKEN, RequestVerdict.AGAIN) and isinstance(
            record, RegisteredSubscription
        ):
            taken = RequestConfirmation(record.number, shelf.signed(record.had), shelf.keys.signed)
            await send(daemon, record.answers, taken, self.counters)

    async def _send_table(self, daemon: hushcast.Daemon, request: AskTable) -> None:
        table = self.shelf.newest_table
        hour = int(self.env.elapsed() // _HOUR)
        if hour != self._hour:
            self._hour, self._tables = hour, 0
        if table is None or self._tables >= MAX_TABLES_AN_HOUR:
            self.counters.add("requests_full")
            return
        self._tables += 1
        await send(daemon, request.answers, await self.shelf.table_data(table), self.counters)
        self.counters.add("weights_sent")


def _check_private(link: str) -> None:
    """Raise `UsageError` for anything but a private topic: answers are nobody else's, and flood nobody's.

    One that is wide would have the daemon hand in each part in up to sixteen shards, for one stamp.
    """
    topic = parse_topic(link)
    if topic.secret is None or topic.attributes or topic.width:
        raise UsageError("answers go to private topics alone, which are not wide")
