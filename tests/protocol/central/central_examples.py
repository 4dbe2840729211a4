"""Examples of everything that users, proxies and the server of the central system say; the proofs hold."""

from __future__ import annotations

from core_examples import DAY, small_message, stream

from hushcast_protocol.base.crypto.group import Scalar
from hushcast_protocol.base.crypto.proof_of_work import ProofOfWork
from hushcast_protocol.base.wire import encode
from hushcast_protocol.central import frames, request_proofs
from hushcast_protocol.central.introduction import (
    PseudonymSecret,
    SealingKey,
    factor_for,
    introduction,
    pseudonym_of,
    transformation,
)
from hushcast_protocol.central.rerouting import encrypted, rerouted, transformed, wrap

KEY, SERVER, BLINDING = (Scalar.draw(stream(number)) for number in (1, 2, 3))
SEALING = SealingKey.draw(stream(4))
SECRET = PseudonymSecret.draw(stream(5))
PSEUDONYM = pseudonym_of(SECRET)
SALT = b"salt" * 4
SEALED = introduction(SEALING.public(), "subscribe", DAY, KEY, BLINDING, SECRET)
FACTOR = factor_for(SERVER, BLINDING.times(KEY))
THERE = transformation(BLINDING, FACTOR)
MESSAGE = small_message((b"t" * 16,))
TOKENS = tuple(encrypted(KEY, bytes([number]) * 16) for number in range(3))
AT_SERVER = tuple(transformed(THERE, token) for token in TOKENS)
WRAPPED = wrap(KEY, encode(MESSAGE), stream(6))
WRAPPED_AT_SERVER = rerouted(THERE, WRAPPED)
SUBSCRIBE = request_proofs.subscribe(PSEUDONYM, SECRET, 1, TOKENS)
WITHDRAW = request_proofs.withdraw(PSEUDONYM, SECRET, 2, TOKENS[:1])
ATTACH = request_proofs.attach(PSEUDONYM, SECRET)
PUBLISH = request_proofs.publish(PSEUDONYM, SECRET, TOKENS, WRAPPED)
CHAIN = request_proofs.followed(SALT, WRAPPED)

FROM_USER: list[frames.FromUser] = [
    frames.Introduce(BLINDING.reveal(), SEALED, None),
    frames.Introduce(BLINDING.reveal(), SEALED, ProofOfWork(1, b"12345678")),
    SUBSCRIBE,
    WITHDRAW,
    request_proofs.withdraw(PSEUDONYM, SECRET, 3, ()),
    ATTACH,
    PUBLISH,
    request_proofs.acknowledge(SECRET, CHAIN, 1),
    frames.Ping(),
]
TO_USER: list[frames.ToUser] = [
    request_proofs.done(SECRET, SUBSCRIBE, "accepted"),
    frames.UserAnswer("closed", None),
    frames.AttachAnswer(SALT),
    frames.Delivery(WRAPPED),
    frames.Pong(7, True),
]
FROM_PROXY: list[frames.FromProxy] = [
    frames.ProxyRequest(1, frames.AskTransformationFactor(SEALED)),
    frames.ProxyRequest(2, request_proofs.subscribe(PSEUDONYM, SECRET, 1, AT_SERVER)),
    frames.ProxyRequest(3, request_proofs.withdraw(PSEUDONYM, SECRET, 2, AT_SERVER[:1])),
    frames.ProxyRequest(4, ATTACH),
    frames.ProxyRequest(70_000, request_proofs.publish(PSEUDONYM, SECRET, AT_SERVER, WRAPPED_AT_SERVER)),
    frames.DeliveriesAcknowledged(4, 1, request_proofs.acknowledge(SECRET, CHAIN, 1).proof),
    frames.Detach(4),
    frames.Ping(),
]
FROM_SERVER: list[frames.FromServer] = [
    frames.ServerAnswer(1, frames.TransformationFactor(PSEUDONYM, DAY, FACTOR.reveal())),
    frames.ServerAnswer(2, request_proofs.done(SECRET, SUBSCRIBE, "accepted")),
    frames.ServerAnswer(3, frames.UserAnswer("unknown", None)),
    frames.ServerAnswer(4, frames.AttachAnswer(SALT)),
    frames.ServerDelivery(4, WRAPPED_AT_SERVER),
    frames.Detach(4),
    frames.Pong(0, True),
]
SPOKEN = {
    "from-user": (frames.decode_from_user, FROM_USER),
    "to-user": (frames.decode_to_user, TO_USER),
    "from-proxy": (frames.decode_from_proxy, FROM_PROXY),
    "from-server": (frames.decode_from_server, FROM_SERVER),
}
