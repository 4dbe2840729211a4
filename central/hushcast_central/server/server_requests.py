"""Requests: what proxies ask the server, each answered by its number once what it changes is on disk."""

from __future__ import annotations

from typing import cast

import trio

from hushcast_central.server.deliveries import ProxyLink
from hushcast_central.server.publications import ServerPublications
from hushcast_central.server.subscriptions import ServerSubscriptions
from hushcast_protocol.base import observations
from hushcast_protocol.base.buckets import TokenBucket
from hushcast_protocol.base.crypto.group import Scalar
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.central.frames import (
    AskTransformationFactor,
    CentralVerdict,
    ProxyRequest,
    Publish,
    ServerAnswer,
    Subscribe,
    TransformationFactor,
    UserAnswer,
    WithdrawTokens,
)
from hushcast_protocol.central.introduction import SealingKey, factor_for, opened
from hushcast_protocol.central.network import Proxy
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log

MAX_UNDER_WAY = 256  # requests of a proxy whose answers wait for the disk; meanwhile its link is not read
INTRODUCTIONS_A_MINUTE = 6000.0  # of a proxy: each publication has one, and a core takes a few times as many
INTRODUCTIONS_AT_ONCE = 6000.0


class ServerRequests:
    """The requests that one server answers."""

    def __init__(
        self,
        sealing_key: SealingKey,
        group_key: Scalar,
        subscriptions: ServerSubscriptions,
        publications: ServerPublications,
        context: Context,
    ) -> None:
        self._sealing_key = sealing_key
        self._group_key = group_key
        self._subscriptions = subscriptions
        self._publications = publications
        self._env = context.env
        self._counters = context.counters
        self._tracer = context.tracer
        self._introductions: dict[bytes, TokenBucket] = {}  # by proxy

    async def answer(
        self, link: ProxyLink, proxy: Proxy, request: ProxyRequest, slots: trio.Semaphore
    ) -> None:
        """Carry out a request and post its answer; gives back one of `slots`."""
        try:
            what = await self._consider(link, proxy, request)
        except Refusal as refusal:
            self._counters.add(f"refused_{refusal.reason}")
            what = UserAnswer(cast(CentralVerdict, refusal.reason), None)
        except Exception:
            self._counters.add("internal_errors")
            log.exception("a request met an error of this program")
            what = UserAnswer("closed", None)
        finally:
            slots.release()
        if what is not None:
            link.writer.post(ServerAnswer(request.number, what))

    async def _consider(
        self, link: ProxyLink, proxy: Proxy, request: ProxyRequest
    ) -> TransformationFactor | UserAnswer | None:
        what = request.what
        if isinstance(what, AskTransformationFactor):
            return await self._factor(proxy, what)
        if isinstance(what, Publish) != (proxy.role == "publications"):
            raise Refusal("form")
        if isinstance(what, Publish):
            return await self._publications.take(proxy.key, what)
        if isinstance(what, Subscribe):
            return await self._subscriptions.subscribe(proxy.key, what)
        if isinstance(what, WithdrawTokens):
            return await self._subscriptions.withdraw(proxy.key, what)
        if request.number in link.attachments:
            raise Refusal("form")
        self._subscriptions.attach(link, proxy.key, request.number, what)
        return None

    async def _factor(self, proxy: Proxy, what: AskTransformationFactor) -> TransformationFactor:
        if not self._may_introduce(proxy):
            raise Refusal("quota")
        try:
            introduced = opened(self._sealing_key, what.sealed)
        except PeerError:
            raise Refusal("form") from None
        if introduced.use == "publish" and proxy.role == "publications":
            self._publications.introduce(proxy.key, introduced)
        elif introduced.use == "subscribe" and proxy.role == "deliveries":
            await self._subscriptions.introduce(proxy.key, introduced)
        else:
            raise Refusal("form")
        self._counters.add("introductions")
        self._tracer.observe(observations.Introduced(introduced.pseudonym, introduced.use))
        factor = factor_for(self._group_key, introduced.blinded)
        return TransformationFactor(introduced.pseudonym, introduced.day, factor.reveal())

    def _may_introduce(self, proxy: Proxy) -> bool:
        now = self._env.elapsed()
        bucket = self._introductions.get(proxy.key)
        if bucket is None:
            bucket = TokenBucket(INTRODUCTIONS_A_MINUTE / 60, INTRODUCTIONS_AT_ONCE, now)
            self._introductions[proxy.key] = bucket
        return bucket.take(now)
