"""Passing: a proxy's part in users' requests and deliveries, which it transforms and cannot read."""

from __future__ import annotations

from typing import cast

import msgspec

from hushcast_central.server_link import Receiver, ServerLink
from hushcast_central.transformation_keys import TransformationKeys
from hushcast_protocol.base import observed
from hushcast_protocol.base.errors import AuthenticationError, PeerError, Refusal
from hushcast_protocol.base.group import Scalar, received_scalar
from hushcast_protocol.central.frames import (
    AskFactor,
    Attach,
    Attached,
    Delivery,
    Done,
    Factor,
    Introduce,
    Publish,
    Subscribe,
    Verdict,
    Withdraw,
)
from hushcast_protocol.central.introduction import handed_in, transformation
from hushcast_protocol.central.network import ProxyRole
from hushcast_protocol.central.rerouting import Wrapped, mark, rerouted
from hushcast_protocol.central.transforming import Transformer
from hushcast_runtime.admission import Admission
from hushcast_runtime.context import Context
from hushcast_runtime.transports.base import TransportError

Asked = Introduce | Subscribe | Withdraw | Publish


class Passing:
    """What one proxy does with what users and the server say."""

    def __init__(
        self,
        role: ProxyRole,
        keys: TransformationKeys,
        admission: Admission,
        server: ServerLink,
        context: Context,
    ) -> None:
        self._role = role
        self._use = "publish" if role == "publications" else "subscribe"
        self._keys = keys
        self._admission = admission
        self._server = server
        self._now = context.env.now
        self._counters = context.counters
        self._tracer = context.tracer
        self._transformer = Transformer()

    async def answer(self, what: Asked) -> Done:
        """Answer a user's request."""
        try:
            if isinstance(what, Introduce):
                answer = await self._introduce(what)
            else:
                answer = await self._pass_on(what)
        except Refusal as refusal:
            return self._refused(refusal.reason)
        except (PeerError, TransportError):
            return self._refused("closed")
        if answer.verdict != "accepted":
            self._counters.add("refused_by_server")
        return answer

    async def attach(self, what: Attach, receiver: Receiver) -> tuple[int, Attached | Done]:
        """Attach a user; return the attachment's number (`ServerLink`) and the answer."""
        try:
            if self._role != "deliveries":
                raise Refusal("form")
            self._factor(what.pseudonym)
            number, answer = await self._server.attach(what, receiver)
        except Refusal as refusal:
            return 0, self._refused(refusal.reason)
        except (PeerError, TransportError):
            return 0, self._refused("closed")
        if isinstance(answer, Done):
            self._counters.add("refused_by_server")
        return number, answer

    def delivery(self, pseudonym: bytes, wrapped: Wrapped) -> Delivery | None:
        """Turn what the server sent into what the user can open; none where that cannot be."""
        if (factor := self._keys.find(pseudonym)) is None:
            return None
        try:
            turned = rerouted(factor.inverse(), wrapped)
        except AuthenticationError:
            self._counters.add("server_faults")
            return None
        self._counters.add("deliveries_passed")
        if self._tracer.is_on:
            size = len(wrapped.payload)
            self._tracer.observe(observed.Dispatched(None, pseudonym, mark(wrapped), size))
        return Delivery(turned)

    def forget_results(self) -> None:
        """Forget what was transformed lately: a day is over."""
        self._transformer.forget()

    async def _introduce(self, what: Introduce) -> Done:
        if (refused := self._admission.refusal(what.stamp, handed_in(what.sealed))) is not None:
            raise Refusal(refused)
        blinding = _scalar(what.blinding)
        answer = await self._server.request(AskFactor(what.sealed))
        if isinstance(answer, Done):
            return answer
        try:
            factor = transformation(blinding, received_scalar(answer.factor))
        except AuthenticationError:
            self._counters.add("server_faults")
            raise
        await self._keys.add(answer.pseudonym, answer.day, factor, self._now())
        self._counters.add("introductions")
        self._tracer.observe(observed.Introduced(answer.pseudonym, self._use))
        return Done("accepted", None)

    async def _pass_on(self, what: Subscribe | Withdraw | Publish) -> Done:
        if isinstance(what, Publish) != (self._role == "publications"):
            raise Refusal("form")
        turned = self._turned(what)
        if self._tracer.is_on:
            self._observe(turned)
        answer = await self._server.request(turned)
        if isinstance(answer, Factor):
            self._counters.add("server_faults")
            raise PeerError("the server answered another question")
        if answer.verdict == "accepted" and isinstance(what, Publish):
            self._counters.add("publications_passed")
        return answer

    def _turned(self, what: Subscribe | Withdraw | Publish) -> Subscribe | Withdraw | Publish:
        """Return a request as the server can use it."""
        factor = self._factor(what.pseudonym)
        try:
            tokens = self._transformer.tokens(factor, what.tokens)
            if isinstance(what, Publish):
                wrapped = rerouted(factor, what.wrapped)
                return msgspec.structs.replace(what, tokens=tokens, wrapped=wrapped)
            return msgspec.structs.replace(what, tokens=tokens)
        except AuthenticationError:
            raise Refusal("form") from None

    def _observe(self, passed: Subscribe | Withdraw | Publish) -> None:
        if isinstance(passed, Publish):
            size = len(passed.wrapped.payload)
            self._tracer.observe(
                observed.Handed(None, passed.pseudonym, passed.tokens, mark(passed.wrapped), size)
            )
        elif isinstance(passed, Subscribe):
            self._tracer.observe(observed.Registered(passed.pseudonym, passed.serial, passed.tokens))

    def _factor(self, pseudonym: bytes) -> Scalar:
        if (factor := self._keys.find(pseudonym)) is None:
            raise Refusal("unknown")
        return factor

    def _refused(self, verdict: str) -> Done:
        self._counters.add(f"refused_{verdict}")
        return Done(cast(Verdict, verdict), None)


def _scalar(value: bytes) -> Scalar:
    try:
        return received_scalar(value)
    except AuthenticationError:
        raise Refusal("form") from None
