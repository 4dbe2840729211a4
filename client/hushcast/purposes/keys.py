"""Purposes for programs: what a message may be used for, and what a subscription reads for, by keys.

Sealing and opening happen in the program: the daemon is told neither purposes nor keys.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from hushcast.purposes.purpose_files import PurposeFiles, read_grant_files, read_vocabulary_file
from hushcast.secret_files import read_key, write_new
from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.base.errors import AuthenticationError, Refusal, UsageError
from hushcast_protocol.content.payload_sizes import MAX_PAYLOAD
from hushcast_protocol.content.predicates import Predicate, write_where
from hushcast_protocol.content.topics import parse_topic, write_link
from hushcast_protocol.mqtt.envelope import OpenedEnvelope, enclose
from hushcast_protocol.purposes.clauses import of_message
from hushcast_protocol.purposes.inner_content import InnerContent, LockSecret, digest_of, lock_of
from hushcast_protocol.purposes.purpose_keyring import PurposeKeyring, PurposeReader
from hushcast_protocol.purposes.purpose_problems import PurposeError, PurposeProblem


class PurposeKeys:
    """A vocabulary to seal by, and grants to open by. Its `repr` shows none of it."""

    def __init__(
        self, files: PurposeFiles, now: Callable[[], float] = time.time, randomness: Randomness = os.urandom
    ) -> None:
        """Programs use `read_purpose_keys`."""
        self._files = files
        self._now = now
        self._keyring = PurposeKeyring(files.issued, (), True, randomness)

    @property
    def purposes(self) -> tuple[str, ...]:
        """All purposes of the vocabulary."""
        return tuple(self._files.issued.vocabulary)

    @property
    def granted(self) -> tuple[str, ...]:
        """The purposes for which grants are held, those that are over included."""
        return tuple(sorted({one.purpose for one in self._files.grants}))

    def allow(
        self,
        purposes: Iterable[str] | None = None,
        but_not: Iterable[str] = (),
        *,
        lock: Lock | None = None,
    ) -> Allowed:
        """Return what messages may be used for, for `Daemon.publish`: for these with all below them.

        Without `purposes` for everything; with an empty list for nothing, and nobody opens it. `but_not` are
        taken away, with all below them. With `lock` they can be withdrawn; readers see of a topic which were
        published with one lock. Raises `UsageError` for a purpose that is not in the vocabulary.
        """
        clause = of_message("", "#", purposes, but_not, self._files.issued.vocabulary)

        def seal(payload: bytes, topic: str) -> tuple[bytes, frozenset[str]]:
            withdrawn_by = None if lock is None else digest_of(lock.of(topic))
            return self._keyring.seal(
                enclose(OpenedEnvelope(payload)), [clause], False, self._now(), withdrawn_by
            )

        return Allowed(seal)

    def withdraw(self, lock: Lock) -> Allowed:
        """Return what, published with any payload, withdraws all that was published there with a lock.

        The payload is left aside. The lock is spent: what is published with it from then on, nobody gets.
        """
        return Allowed(lambda payload, topic: self._keyring.withdraw(lock.of(topic), self._now()))

    def read_for(self, purpose: str) -> ReadFor:
        """Return what a subscription reads for, for `Daemon.subscribe`.

        Raises `UsageError` for a purpose that is not in the vocabulary, or that nothing was granted for.
        """
        wanted = self._files.issued.vocabulary.read(purpose)
        one = PurposeReader(self._files.issued, self._files.grants, wanted)
        if not one.grants:
            held = f"grants are held for {', '.join(self.granted)}" if self.granted else "no grant is held"
            raise UsageError(
                f"no grant is for {wanted} or a purpose above it: {held}; its issuer makes one with "
                "`hushcast purpose grant`"
            )
        return ReadFor(one, self._problem(one))

    def _problem(self, one: PurposeReader) -> str | None:
        """Return why nothing opens that is sealed now, `None` if something does."""
        problem = None
        for grant in one.grants:
            try:
                grant.check(self._files.issued, self._now())
            except PurposeError as error:
                problem = str(error)
            else:
                return None
        return problem


class Lock:
    """What withdraws messages that were published with it, and is spent by that; it shows itself nowhere."""

    def __init__(self, secret: LockSecret) -> None:
        """Programs use `new_lock` and `read_lock`."""
        self._secret = secret

    def __repr__(self) -> str:
        """Show nothing of it."""
        return "Lock(...)"

    def of(self, topic: str) -> bytes:
        """Return what withdraws messages on one topic: shown there, it withdraws none elsewhere."""
        return lock_of(self._secret, "", write_link(parse_topic(topic)), 0)


class Allowed:
    """What messages may be used for, of as many messages as you like; or that earlier ones are withdrawn."""

    def __init__(self, seal: Callable[[bytes, str], tuple[bytes, frozenset[str]]]) -> None:
        """Programs use `PurposeKeys.allow` and `PurposeKeys.withdraw`."""
        self._seal = seal

    def seal(self, payload: bytes, topic: str) -> tuple[bytes, frozenset[str]]:
        """Return what is published on a topic, and its tags, by which relays find who may read it.

        Raises `Refusal` where it is too large, or the vocabulary is not for now.
        """
        try:
            sealed, tags = self._seal(payload, topic)
        except (PurposeError, AuthenticationError) as error:
            raise Refusal(f"{error}; its issuer has its next version") from None
        if len(sealed) > MAX_PAYLOAD:
            most = MAX_PAYLOAD - (len(sealed) - len(payload))
            raise Refusal(f"the payload is too large: sealed for these purposes {most} bytes are possible")
        return sealed, tags


class ReadFor:
    """What a subscription reads for: it brings what opens for this purpose, and nothing else."""

    def __init__(self, reader: PurposeReader, problem: str | None) -> None:
        """Programs use `PurposeKeys.read_for`."""
        self._reader = reader
        self.problem = problem
        """Why nothing opens that is sealed now, though what was sealed before may; `None` if it does."""

    def where(self, condition: str = "") -> str:
        """Return the condition that such a subscription has in the daemon, as other calls take it.

        `condition` is the one on the topic's attributes.
        """
        tags = write_where(Predicate((), self._reader.tags))
        return ", ".join(part for part in (condition, tags) if part)

    def open(self, payload: bytes) -> InnerContent | PurposeProblem:
        """Return what is in a message, or why it does not open for this purpose."""
        try:
            return self._reader.open(payload)
        except PurposeError as error:
            return error.problem


def new_lock(path: str | os.PathLike[str], randomness: Randomness = os.urandom) -> Lock:
    """Make a lock in a new file; raise `UsageError` where that cannot be made."""
    secret = LockSecret.draw(randomness)
    write_new(Path(path), secret.reveal(), "lock")
    return Lock(secret)


def read_lock(path: str | os.PathLike[str]) -> Lock:
    """Return the lock in a file that only its owner can read; raise `UsageError`."""
    return Lock(LockSecret(read_key(Path(path), LockSecret.LENGTH, "hushcast purpose lock new FILE")))


def read_purpose_keys(
    vocabulary: str | os.PathLike[str],
    *,
    issuer: str | None = None,
    reader_key: str | os.PathLike[str] | None = None,
    grants: Iterable[str | os.PathLike[str]] = (),
) -> PurposeKeys:
    """Return what lies in an issuer's signed vocabulary, and in its grants to a reader, as files.

    Who only publishes needs the vocabulary alone. `issuer` is the issuer's key in hexadecimal digits, from
    somebody other than whoever brought the file; without it the file is taken at its word. Raises
    `UsageError` for what cannot be read, or is not as the issuer made it for this reader.
    """
    public = None
    if issuer is not None:
        try:
            public = bytes.fromhex(issuer)
        except ValueError:
            raise UsageError("an issuer's key has 64 hexadecimal digits") from None
    issued = read_vocabulary_file(Path(vocabulary), public)
    reader = None if reader_key is None else Path(reader_key)
    return PurposeKeys(PurposeFiles(issued, read_grant_files(map(Path, grants), reader, issued.body.issuer)))
