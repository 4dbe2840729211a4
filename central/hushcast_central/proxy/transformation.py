"""The transformation: a proxy's part in requests and deliveries, which it transforms and cannot read."""

from __future__ import annotations

from typing import cast

import msgspec

from hushcast_central.proxy.server_link import DeliverySink, ServerLink
from hushcast_central.proxy.transformation_keys import TransformationKeys
from hushcast_protocol.base import observations
from hushcast_protocol.base.crypto.group import Scalar, received_scalar
from hushcast_protocol.base.errors import AuthenticationError, PeerError, Refusal
from hushcast_protocol.central.frames import (
    AskTransformationFactor,
    Attach,
    AttachAnswer,
    CentralVerdict,
    Delivery,
    Introduce,
    Publish,
    Subscribe,
    TransformationFactor,
    UserAnswer,
    WithdrawTokens,
)
from hushcast_protocol.central.introduction import handed_in, transformation
from hushcast_protocol.central.network import ProxyRole
from hushcast_protocol.central.rerouting import WrappedMessage, mark, rerouted
from hushcast_protocol.central.token_transformer import Transformer
from hushcast_runtime.admission import Admission
from hushcast_runtime.context import Context
from hushcast_runtime.transports.base import TransportError

UserRequest = Introduce | Subscribe | WithdrawTokens | Publish


class ProxyTransformation:
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

    async def answer(self, what: UserRequest) -> UserAnswer:
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

    async def attach(self, what: Attach, receiver: DeliverySink) -> tuple[int, AttachAnswer | UserAnswer]:
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
        if isinstance(answer, UserAnswer):
            self._counters.add("refused_by_server")
        return number, answer

    def delivery(self, pseudonym: bytes, wrapped: WrappedMessage) -> Delivery | None:
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
            self._tracer.observe(observations.Dispatched(None, pseudonym, mark(wrapped), size))
        return Delivery(turned)

    def forget_results(self) -> None:
        """Forget what was transformed lately: a day is over."""
        self._transformer.forget()

    async def _introduce(self, what: Introduce) -> UserAnswer:
        if (refused := self._admission.refusal(what.stamp, handed_in(what.sealed))) is not None:
            raise Refusal(refused)
        blinding = _scalar(what.blinding)
        answer = await self._server.request(AskTransformationFactor(what.sealed))
        if isinstance(answer, UserAnswer):
            return answer
        try:
            factor = transformation(blinding, received_scalar(answer.factor))
        except AuthenticationError:
            self._counters.add("server_faults")
            raise
        await self._keys.add(answer.pseudonym, answer.day, factor, self._now())
        self._counters.add("introductions")
        self._tracer.observe(observations.Introduced(answer.pseudonym, self._use))
        return UserAnswer("accepted", None)

    async def _pass_on(self, what: Subscribe | WithdrawTokens | Publish) -> UserAnswer:
        if isinstance(what, Publish) != (self._role == "publications"):
            raise Refusal("form")
        turned = self._turned(what)
        if self._tracer.is_on:
            self._observe(turned)
        answer = await self._server.request(turned)
        if isinstance(answer, TransformationFactor):
            self._counters.add("server_faults")
            raise PeerError("the server answered another question")
        if answer.verdict == "accepted" and isinstance(what, Publish):
            self._counters.add("publications_passed")
        return answer

    def _turned(self, what: Subscribe | WithdrawTokens | Publish) -> Subscribe | WithdrawTokens | Publish:
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

    def _observe(self, passed: Subscribe | WithdrawTokens | Publish) -> None:
        if isinstance(passed, Publish):
            size = len(passed.wrapped.payload)
            self._tracer.observe(
                observations.Handed(None, passed.pseudonym, passed.tokens, mark(passed.wrapped), size)
            )
        elif isinstance(passed, Subscribe):
            self._tracer.observe(observations.Registered(passed.pseudonym, passed.serial, passed.tokens))

    def _factor(self, pseudonym: bytes) -> Scalar:
        if (factor := self._keys.find(pseudonym)) is None:
            raise Refusal("unknown")
        return factor

    def _refused(self, verdict: str) -> UserAnswer:
        self._counters.add(f"refused_{verdict}")
        return UserAnswer(cast(CentralVerdict, verdict), None)


def _scalar(value: bytes) -> Scalar:
    try:
        return received_scalar(value)
    except AuthenticationError:
        raise Refusal("form") from None
