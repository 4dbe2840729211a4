"""Targets: what users, proxies and the server of the central system read, up to where a decision is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import central_examples as examples
import deliveries_world
import trio
import trio.testing
import user_world
from core_examples import stream
from fuzzing import EachStep, Script, Target, scripts
from mutating import mutate_packed
from nacl.bindings import crypto_box_seal

from hushcast_protocol.base.crypto.group import Scalar, base, check_point, received_scalar
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.wire import decoder, encode
from hushcast_protocol.central import frames, introduction, request_proofs
from hushcast_protocol.central.rerouting import WrappedMessage, rerandomised, rerouted, unwrap, wrap
from hushcast_protocol.central.token_transformer import Transformer
from hushcast_protocol.content.messages import Message, check_message
from hushcast_runtime.logs import LEVELS, log

_PUBLIC = base(examples.SERVER)


def _from_user(data: bytes) -> object:
    """A proxy: it transforms what it is told, whoever told it."""
    frame = frames.decode_from_user(data)
    assert frames.decode_from_user(encode(frame)) == frame
    if isinstance(frame, frames.Introduce):
        introduction.transformation(received_scalar(frame.blinding), examples.FACTOR)
    if isinstance(frame, frames.Subscribe | frames.WithdrawTokens | frames.Publish):
        for token in Transformer().tokens(examples.THERE, frame.tokens):
            check_point(token)
    if isinstance(frame, frames.Publish):
        _rerouted(examples.THERE, frame.wrapped)
    return frame


def _rerouted(factor: Scalar, wrapped: WrappedMessage) -> WrappedMessage:
    there = rerouted(factor, wrapped)
    assert rerouted(factor.inverse(), there) == wrapped
    return there


def _to_user(data: bytes) -> object:
    """A user: a proxy says what it likes, and only the server's own answers count."""
    frame = frames.decode_to_user(data)
    assert frames.decode_to_user(encode(frame)) == frame
    if isinstance(frame, frames.UserAnswer):
        genuine = request_proofs.done(examples.SECRET, examples.SUBSCRIBE, frame.verdict)
        held = request_proofs.is_from_server(examples.SECRET, examples.SUBSCRIBE, frame)
        assert held == (frame == genuine)
    if isinstance(frame, frames.Delivery):
        request_proofs.followed(examples.SALT, frame.wrapped)
        assert unwrap(examples.KEY, frame.wrapped) == encode(examples.MESSAGE)  # of one key, one message
    return frame


def _from_proxy(data: bytes) -> object:
    """The server: of any request, only what who has the pseudonym said."""
    frame = frames.decode_from_proxy(data)
    assert frames.decode_from_proxy(encode(frame)) == frame
    if isinstance(frame, frames.DeliveriesAcknowledged):
        request_proofs.check_acknowledgement(examples.SECRET, examples.CHAIN, frame.number, frame.proof)
    if isinstance(frame, frames.ProxyRequest):
        if isinstance(frame.what, frames.AskTransformationFactor):
            return _asked(frame.what.sealed)
        if isinstance(frame.what, frames.Publish):
            rerandomised(_PUBLIC, frame.what.wrapped, stream(1))
            unwrap(examples.SERVER, frame.what.wrapped)
        request_proofs.check_request(examples.SECRET, frame.what)
    return frame


def _asked(sealed: bytes) -> object:
    found = introduction.opened(examples.SEALING, sealed)
    assert found.pseudonym == introduction.pseudonym_of(found.secret)
    return introduction.factor_for(examples.SERVER, found.blinded)


def _from_server(data: bytes) -> object:
    """A proxy: a server that lies gives it no number or point that it fails on."""
    frame = frames.decode_from_server(data)
    assert frames.decode_from_server(encode(frame)) == frame
    if isinstance(frame, frames.ServerAnswer) and isinstance(frame.what, frames.TransformationFactor):
        factor = received_scalar(frame.what.factor)
        introduction.transformation(examples.BLINDING, factor).inverse()
    if isinstance(frame, frames.ServerDelivery):
        _rerouted(examples.THERE.inverse(), frame.wrapped)
    return frame


def _introduction(data: bytes) -> object:
    """A user that seals what it likes: the server opens it."""
    return _asked(crypto_box_seal(data, examples.SEALING.public()))


def _introductions() -> Iterator[bytes]:
    for use in ("publish", "subscribe"):
        blinded = examples.BLINDING.times(examples.KEY).reveal()
        yield encode(introduction.IntroductionContent(use, examples.DAY, blinded, examples.SECRET.reveal()))


def _wrapped(data: bytes) -> object:
    """Two points and a payload, opened with a key and changed without one."""
    wrapped = _decode_wrapped(data)
    rerandomised(_PUBLIC, wrapped, stream(1))
    _rerouted(examples.THERE, wrapped)
    return unwrap(examples.KEY, wrapped)


_decode_wrapped: Callable[[bytes], WrappedMessage] = decoder(
    WrappedMessage, "wrapped message", frames.MAX_CENTRAL_FRAME
)


def _inside(data: bytes) -> object:
    """A publisher that wraps what it likes: the server opens and reads it."""
    message = _decode_message(unwrap(examples.SERVER, wrap(examples.SERVER, data, stream(2))))
    return check_message(message)


_decode_message: Callable[[bytes], Message] = decoder(Message, "message", frames.MAX_CENTRAL_FRAME)


def _deliveries(data: bytes) -> None:
    """The server deletes what was acknowledged, and loses nothing else, whatever proxies and users do."""
    script = Script(data)
    trio.run(
        deliveries_world.play,
        lambda most: script.number() % most,
        lambda: bool(script),
        clock=trio.testing.MockClock(autojump_threshold=0),
        instruments=[EachStep()],
    )


def _user(data: bytes) -> None:
    """A user believes of the server what it proved, and shows what was sealed for it."""
    log._silent = LEVELS
    script = Script(data)
    trio.run(
        user_world.play,
        lambda most: script.number() % most,
        lambda: bool(script),
        clock=trio.testing.MockClock(autojump_threshold=0),
        instruments=[EachStep()],
    )


def _said(values: list[Any]) -> Callable[[], list[bytes]]:
    return lambda: [encode(value) for value in values]


def _packed(name: str, run: Callable[[bytes], object], corpus: Any, weight: int) -> Target:
    return Target(f"central-{name}", run, corpus, (PeerError,), mutate_packed, weight)


TARGETS = [
    _packed("from-user", _from_user, _said(examples.FROM_USER), 30),
    _packed("to-user", _to_user, _said(examples.TO_USER), 20),
    _packed("from-proxy", _from_proxy, _said(examples.FROM_PROXY), 30),
    _packed("from-server", _from_server, _said(examples.FROM_SERVER), 20),
    _packed("introduction", _introduction, _introductions, 10),
    _packed("wrapped", _wrapped, _said([examples.WRAPPED, examples.WRAPPED_AT_SERVER]), 6),
    _packed("inside", _inside, _said([examples.MESSAGE]), 6),
    Target("central-deliveries", _deliveries, lambda: scripts(size=200), weight=1),
    Target("central-user", _user, lambda: scripts(size=200), weight=1),
]
