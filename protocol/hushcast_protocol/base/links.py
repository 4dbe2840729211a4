"""The link: a mutually authenticated, encrypted sequence of frames over any byte stream.

Three steps, after which both ends hold keys that nobody else has:

1. initiator: magic, network, ephemeral key, and a tag that proves it knows the responder's key;
2. responder: ephemeral key; then, as its first frame, its identity, a signature of the transcript, its view;
3. initiator: as its first frame, its identity and signature, or nothing if it stays anonymous; its view.

A responder does not answer an initiator that does not know its key: a found port does not reveal its mailbox.
The responder proves itself before the initiator reveals anything. Frames sent together share a record and
one seal. The state machine is moved by bytes received and by `send`; it does no I/O; randomness is injected.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from hmac import compare_digest

from nacl.bindings import crypto_scalarmult, crypto_scalarmult_base
from nacl.exceptions import CryptoError

from hushcast_protocol.base.aead import TAG, seal, unseal
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.hashes import LABEL, Domain, digest
from hushcast_protocol.base.roster import RosterView
from hushcast_protocol.base.secrets import Randomness, Seed
from hushcast_protocol.base.signatures import SignaturePurpose, check, signature
from hushcast_protocol.base.wire import Bytes64, PublicKey, Wire, decoder, encode

MAGIC = b"hushcast-link/2\n"
HELLO_SIZE = len(MAGIC) + 32 + 32 + LABEL
MAX_HANDSHAKE_FRAME = 512  # bytes; what an unauthenticated peer can make us hold
# Bytes; no step of a handshake waits for more, so what comes with it is left in the stream.
MAX_HANDSHAKE_READ = 4 + MAX_HANDSHAKE_FRAME + TAG
FULL_RECORD = 64 * 1024  # bytes of frames that share a seal; one by one, seals took a fifth of forwarding
_LENGTH = struct.Struct(">I")


class IdentityProof(Wire, frozen=True, tag="proof"):
    """One end's identity key, its signature over the transcript, and the roster it holds."""

    identity: PublicKey
    signature: Bytes64
    view: RosterView | None


class Anonymous(Wire, frozen=True, tag="anonymous"):
    """What an initiator that stays unnamed sends instead of a proof."""

    view: RosterView | None


_decode_proof: Callable[[bytes], IdentityProof] = decoder(IdentityProof, "proof", MAX_HANDSHAKE_FRAME)
_decode_initiator: Callable[[bytes], IdentityProof | Anonymous] = decoder(
    IdentityProof | Anonymous, "proof", MAX_HANDSHAKE_FRAME
)


@dataclass(frozen=True)
class HandshakeDone:
    """The handshake is done: `peer` is the other end's proven key, `None` where it stays anonymous."""

    peer: PublicKey | None
    view: RosterView | None


class _State(Enum):
    """What the next bytes received must be."""

    HELLO = "the initiator's hello"
    ANSWER = "the responder's ephemeral key"
    PROOF = "the other end's first frame"
    OPEN = "frames"
    FAILED = "nothing: an error ended this link"


class _Cipher:
    """One direction: a key and a counter for its nonces."""

    __slots__ = ("_count", "_key")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._count = 0

    def _nonce(self) -> bytes:
        self._count += 1
        return self._count.to_bytes(24, "big")

    def seal(self, plain: bytes) -> bytes:
        header = _LENGTH.pack(len(plain) + TAG)
        return header + seal(plain, header, self._nonce(), self._key)

    def open(self, header: bytes, sealed: bytes) -> bytes:
        try:
            return unseal(sealed, header, self._nonce(), self._key)
        except CryptoError:
            raise AuthenticationError("a record on a link was altered") from None


class Link:
    """One end of a link. Build it with `initiate` or `respond`.

    `max_frame` (bytes) is what this end takes, and is the same at both ends wherever several frames are sent
    at once: no record is longer than the longest frame in one.
    """

    __slots__ = (
        "_buffer",
        "_ephemeral",
        "_expected",
        "_former",
        "_frames",
        "_identity",
        "_incoming",
        "_initiator",
        "_larger",
        "_max_frame",
        "_network",
        "_outgoing",
        "_state",
        "_to_send",
        "_transcript",
        "_view",
        "answers_as",
    )

    def __init__(
        self,
        state: _State,
        network: bytes,
        ephemeral: bytes,
        identity: Seed | None,
        view: RosterView | None,
        expected: PublicKey | None,
        max_frame: int,
    ) -> None:
        self._state = state
        self._network = network
        self._ephemeral = ephemeral
        self._identity = identity
        self._view = view
        self._expected = expected
        self._max_frame = max_frame
        self._initiator = state is _State.ANSWER
        self._transcript = b""
        self._outgoing: _Cipher | None = None
        self._incoming: _Cipher | None = None
        self._buffer = bytearray()
        self._to_send: list[bytes] = []
        self._frames: list[bytes] = []
        self._former: Sequence[Seed] = ()
        self._larger: Callable[[PublicKey], int] | None = None
        self.answers_as: PublicKey | None = None
        """The key by which the initiator knows this end, once its hello has come."""

    @classmethod
    def initiate(
        cls,
        network: bytes,
        responder: PublicKey,
        randomness: Randomness,
        max_frame: int,
        identity: Seed | None = None,
        view: RosterView | None = None,
    ) -> Link:
        """Begin a link to the daemon with the key `responder`; without `identity` we stay anonymous."""
        return cls(_State.ANSWER, network, randomness(32), identity, view, responder, max_frame)

    @classmethod
    def respond(
        cls,
        network: bytes,
        identity: Seed,
        randomness: Randomness,
        max_frame: int,
        view: RosterView | None = None,
        former: Sequence[Seed] = (),
        larger: Callable[[PublicKey], int] | None = None,
    ) -> Link:
        """Await a link as the daemon, mailbox or directory with the key of `identity`, or a `former` one.

        `larger` tells up to how many bytes a frame may have of an initiator that has proven its key.
        """
        link = cls(_State.HELLO, network, randomness(32), identity, view, None, max_frame)
        link._former, link._larger = former, larger
        return link

    @property
    def is_open(self) -> bool:
        """Tell whether the handshake is done."""
        return self._state is _State.OPEN

    def send(self, frame: bytes) -> None:
        """Put a frame (at most `max_frame` bytes of the other end) into `data_to_send`."""
        if self._state is not _State.OPEN:
            raise RuntimeError("a frame is sent only once the link is open")
        self._frames.append(frame)

    def data_to_send(self) -> bytes:
        """Return and forget the bytes waiting for the stream."""
        if self._state is _State.ANSWER:
            self._greet()
        self._seal_frames()
        data = b"".join(self._to_send)
        self._to_send.clear()
        return data

    def receive(self, data: bytes) -> Iterator[HandshakeDone | bytes]:
        """Take bytes of the stream; yield `HandshakeDone` once, then each frame, opened when asked for.

        All of what these bytes hold is to be taken before the next. Raises `DecodeError` or
        `AuthenticationError`, after which the link is of no use.
        """
        if self._state is _State.FAILED:
            raise DecodeError("a link that failed takes no more bytes")
        self._buffer += data
        del data  # it may be long until more is taken
        try:
            while (events := self._step()) is not None:
                yield from events
        except (DecodeError, AuthenticationError):
            self._state = _State.FAILED
            self._buffer.clear()
            raise

    def _step(self) -> Iterable[HandshakeDone | bytes] | None:
        """Take one step; return what comes of it, or `None` where the buffer does not hold enough for it."""
        if self._state is _State.HELLO:
            return self._take_exactly(HELLO_SIZE, self._on_hello)
        if self._state is _State.ANSWER:
            return self._take_exactly(32, self._on_answer)
        content = self._take_record()
        if content is None:
            return None
        if self._state is _State.OPEN:
            return _frames(content)
        self._state = _State.OPEN
        established = self._on_responder(content) if self._initiator else self._on_initiator(content)
        if self._larger is not None and established.peer is not None:
            self._max_frame = max(self._max_frame, self._larger(established.peer))
        # A link may stay open for days.
        self._transcript, self._identity, self._view, self._larger = b"", None, None, None
        return (established,)

    def _take_exactly(self, size: int, step: Callable[[bytes], None]) -> tuple[()] | None:
        if len(self._buffer) < size:
            # A wrong magic is refused at its first wrong byte, so that a stray client is not kept waiting.
            if self._state is _State.HELLO and not MAGIC.startswith(self._buffer[: len(MAGIC)]):
                raise DecodeError("a link does not begin with this protocol's hello")
            return None
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        step(taken)
        return ()

    def _take_record(self) -> bytes | None:
        if len(self._buffer) < _LENGTH.size:
            return None
        header = bytes(self._buffer[: _LENGTH.size])
        (size,) = _LENGTH.unpack(header)
        is_open = self._state is _State.OPEN
        limit = _LENGTH.size + self._max_frame if is_open else MAX_HANDSHAKE_FRAME
        if not TAG < size <= limit + TAG:
            raise DecodeError("a record's length is outside its limits")
        end = _LENGTH.size + size
        if len(self._buffer) < end:
            return None
        sealed = bytes(self._buffer[_LENGTH.size : end])
        del self._buffer[:end]
        assert self._incoming is not None
        return self._incoming.open(header, sealed)

    def _seal_frames(self) -> None:
        """Seal what waits, in records of no more than this end itself would take."""
        full = min(FULL_RECORD, self._max_frame)
        parts: list[bytes] = []
        size = 0
        for frame in self._frames:
            if parts and size + _LENGTH.size + len(frame) > full:
                self._seal(b"".join(parts))
                parts, size = [], 0
            parts += (_LENGTH.pack(len(frame)), frame)
            size += _LENGTH.size + len(frame)
        if parts:
            self._seal(b"".join(parts))
        self._frames.clear()

    def _greet(self) -> None:
        """Say hello, once: where there is no connection the key would be computed for nothing."""
        if self._transcript:
            return
        assert self._expected is not None
        public = crypto_scalarmult_base(self._ephemeral)
        hello = MAGIC + self._network + public + _tag(self._network, public, self._expected)
        self._transcript = hello
        self._to_send.append(hello)

    def _on_hello(self, hello: bytes) -> None:
        if not hello.startswith(MAGIC):
            raise DecodeError("a link does not begin with this protocol's hello")
        if hello[len(MAGIC) : len(MAGIC) + 32] != self._network:
            raise DecodeError("a link is for another network")
        theirs = hello[-32 - LABEL : -LABEL]
        assert self._identity is not None
        for identity in (self._identity, *self._former):
            if compare_digest(hello[-LABEL:], _tag(self._network, theirs, identity.public())):
                break
        else:
            raise AuthenticationError("a link is for another daemon")
        self._identity, self._former, self.answers_as = identity, (), identity.public()
        ours = crypto_scalarmult_base(self._ephemeral)
        self._agree(hello + ours, theirs)
        self._to_send.append(ours)
        self._transcript = digest(Domain.TRANSCRIPT, self._transcript)
        proof = self._prove(self._identity, SignaturePurpose.LINK_RESPONDER)
        self._seal(proof)
        self._transcript = digest(Domain.TRANSCRIPT, self._transcript, proof)
        self._state = _State.PROOF

    def _on_answer(self, theirs: bytes) -> None:
        self._greet()  # who answers before may know nothing of it
        self._agree(self._transcript + theirs, theirs)
        self._transcript = digest(Domain.TRANSCRIPT, self._transcript)
        self._state = _State.PROOF

    def _on_responder(self, frame: bytes) -> HandshakeDone:
        proof = _decode_proof(frame)
        if proof.identity != self._expected:
            raise AuthenticationError("another daemon answers at a peer's address")
        check(proof.identity, SignaturePurpose.LINK_RESPONDER, self._transcript, proof.signature)
        self._transcript = digest(Domain.TRANSCRIPT, self._transcript, frame)
        if self._identity is None:
            self._seal(encode(Anonymous(self._view)))
        else:
            self._seal(self._prove(self._identity, SignaturePurpose.LINK_INITIATOR))
        return HandshakeDone(proof.identity, proof.view)

    def _on_initiator(self, frame: bytes) -> HandshakeDone:
        proof = _decode_initiator(frame)
        if isinstance(proof, Anonymous):
            return HandshakeDone(None, proof.view)
        check(proof.identity, SignaturePurpose.LINK_INITIATOR, self._transcript, proof.signature)
        return HandshakeDone(proof.identity, proof.view)

    def _prove(self, identity: Seed, purpose: SignaturePurpose) -> bytes:
        proof = IdentityProof(identity.public(), signature(identity, purpose, self._transcript), self._view)
        return encode(proof)

    def _seal(self, content: bytes) -> None:
        assert self._outgoing is not None
        self._to_send.append(self._outgoing.seal(content))

    def _agree(self, transcript: bytes, theirs: bytes) -> None:
        try:
            shared = crypto_scalarmult(self._ephemeral, theirs)
        except (CryptoError, RuntimeError):
            raise AuthenticationError("a link's ephemeral key is not a usable point") from None
        self._ephemeral = b""
        self._transcript = transcript
        forth, back = (
            digest(Domain.LINK_KEY, transcript, direction, key=shared) for direction in (b"forth", b"back")
        )
        outgoing, incoming = (forth, back) if self._initiator else (back, forth)
        self._outgoing, self._incoming = _Cipher(outgoing), _Cipher(incoming)


def _tag(network: bytes, ephemeral: bytes, responder: PublicKey) -> bytes:
    return digest(Domain.LINK_HELLO, network, ephemeral, responder, size=LABEL)


def _frames(content: bytes) -> Iterator[bytes]:
    """Take a record apart. No frame is empty: nothing encodes to no bytes."""
    at, end = 0, len(content)
    while at < end:
        start = at + _LENGTH.size
        at = start + int.from_bytes(content[at:start], "big")
        if not start < at <= end:
            raise DecodeError("a record ends within a frame" if max(start, at) > end else "an empty frame")
        frame = content[start:at]
        if at == end:
            content = b""  # while the last is looked at, it is held once
        yield frame
