"""Subscriptions: the register on disk, and what a change of it means for what waits."""

from __future__ import annotations

import msgspec
import trio

from hushcast_central.server.deliveries import Deliveries, ProxyLink
from hushcast_central.server.kept_publications import KeptPublications
from hushcast_protocol.base import observations
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.central.frames import Attach, Subscribe, UserAnswer, WithdrawTokens
from hushcast_protocol.central.introduction import OpenedIntroduction
from hushcast_protocol.central.pseudonym_register import (
    MAX_PSEUDONYMS,
    PseudonymRecord,
    PseudonymRegister,
    waits_for,
)
from hushcast_protocol.content.hops import Hop
from hushcast_runtime.context import Context
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore, sized
from hushcast_runtime.storage.store import record_reader

_KIND = RecordKind(
    "pseudonym",
    StateOwner.SERVER,
    holds="who subscribes: pseudonym, proxy, secret, tokens, the last request; once it has tokens",
    lifetime="until its day has lapsed",
    bound=f"{MAX_PSEUDONYMS:,}",
)
_ID = 32  # bytes of a pseudonym
_SCAN = 256  # records read at once, of 8 KiB at most
_read = record_reader(PseudonymRecord, "pseudonym")
_pack = msgspec.msgpack.Encoder().encode


class ServerSubscriptions:
    """What one server takes from subscribers. Methods raise `Refusal` with a verdict."""

    def __init__(
        self,
        register: PseudonymRegister,
        deliveries: Deliveries,
        kept: KeptPublications,
        context: Context,
    ) -> None:
        self._register = register
        self._deliveries = deliveries
        self._kept = kept
        self._context = context

    async def load(self) -> None:
        """Know who subscribed before a restart."""
        await restore(
            self._context.store,
            _KIND,
            lambda pseudonym, value: self._register.load(sized(pseudonym, _ID), _read(value)),
            at_once=_SCAN,
        )

    def clear(self, hops: list[Hop]) -> None:
        """Forget what waits for pseudonyms that were forgotten before the restart."""
        for hop in hops:
            if waits_for(hop) not in self._register:
                self._deliveries.forget(waits_for(hop))

    async def introduce(self, proxy: PublicKey, introduced: OpenedIntroduction) -> None:
        """Know a pseudonym; it is stored once it has asked for anything."""
        self._register.introduce(proxy, introduced, self._context.env.now())
        await self._store()

    async def subscribe(self, proxy: PublicKey, request: Subscribe) -> UserAnswer:
        """Route tokens, durably, or bring what is kept under them."""
        answer = self._register.subscribe(proxy, request, self._context.env.now())
        self._kept.ask(request.pseudonym, request.tokens)
        self._context.tracer.observe(
            observations.Registered(request.pseudonym, request.serial, request.tokens)
        )
        await self._store()
        return answer

    async def withdraw(self, proxy: PublicKey, request: WithdrawTokens) -> UserAnswer:
        """Route tokens no more, durably; of what is kept once all was brought."""
        self._kept.check_brought(request.pseudonym, request.tokens)
        answer = self._register.withdraw(proxy, request)
        if request.pseudonym not in self._register:
            self._deliveries.forget(request.pseudonym)
        await self._store()
        return answer

    def attach(self, link: ProxyLink, proxy: PublicKey, number: int, request: Attach) -> None:
        """Answer with the attachment and what waits."""
        secret = self._register.attach(proxy, request, self._context.env.now())
        self._deliveries.attach(link, number, request.pseudonym, secret)

    async def expire(self, now: float) -> None:
        """Forget pseudonyms whose day has lapsed, and what waits for them, some at a time."""
        for _ in self._register.expire(now):
            self._context.store.write_soon(*self._changes())
            await trio.lowlevel.checkpoint()

    async def _store(self) -> None:
        await self._context.store.write(*self._changes())

    def _changes(self) -> list[Change]:
        changes = []
        for pseudonym, kept in self._register.changes():
            if kept is None:
                self._deliveries.forget(pseudonym)
            changes.append(Change(_KIND, pseudonym, _pack(kept) if kept is not None else None))
        return changes
