"""Kept evidence: what an authority has on disk against others, read beside it, and told as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from hushcast_directory.server.restoration import SIGNS_TWICE
from hushcast_protocol.authorities.actions import AuthorityState
from hushcast_protocol.authorities.evidence import Evidence, Fork, check_evidence, who_forked
from hushcast_protocol.authorities.heads import MAX_CERTIFIED, decode_head
from hushcast_protocol.base.errors import PeerError, UsageError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import decoder, encode
from hushcast_runtime.storage.state_layout import DATABASE
from hushcast_runtime.storage.store import StoreError, read_records, record_reader

MAX_PROOF = 2 * MAX_CERTIFIED + 64  # bytes of one proof; a fork of nine authorities has some 12 kB
MAX_PROOFS_FILE = 4 * 1024 * 1024  # bytes of a file of proofs: an authority keeps 256, of 1 kB each as text

MAX_EVIDENCE = 28  # pieces that are kept against one authority, some 400 bytes each; more say nothing new

EVIDENCE = RecordKind(
    "evidence",
    StateOwner.DIRECTORY,
    holds="proof that an authority said two things",
    lifetime="for ever",
    bound=f"{MAX_EVIDENCE} against one authority",
)
"""Each by a digest."""
AUTHORITY = RecordKind(
    "authority",
    StateOwner.DIRECTORY,
    holds="for which epochs it voted and assented, which heads it follows, proof of a fork",
    lifetime="for ever",
    bound="1",
)
"""All that its machine keeps, in one."""
read_evidence: Callable[[bytes], Evidence] = record_reader(Evidence, "evidence")
read_kept: Callable[[bytes], AuthorityState] = record_reader(AuthorityState, "authority", SIGNS_TWICE)

_decode = decoder(Evidence | Fork, "proof", MAX_PROOF)


class CheckedEvidence(NamedTuple):
    """One proof that was checked."""

    kind: Literal["two statements", "two heads"]
    epoch: int
    accused: tuple[str, ...]
    """Keys, in hexadecimal digits: who said two things."""
    proof: Evidence | Fork

    def line(self) -> dict[str, object]:
        """Return what is told of it; `proof` is all that others need to check it."""
        return {
            "kind": self.kind,
            "epoch": self.epoch,
            "accused": list(self.accused),
            "proof": encode(self.proof).hex(),
        }


def kept_proofs(state: Path) -> list[Evidence | Fork]:
    """Return what an authority keeps in its state directory; it may run meanwhile. Raises `UsageError`."""
    file = state / DATABASE
    try:
        evidence = [read_evidence(value) for _, value in read_records(file, EVIDENCE)]
        forks = [read_kept(value).chain.fork for _, value in read_records(file, AUTHORITY)]
    except StoreError as error:
        raise UsageError(str(error)) from None
    return [*evidence, *(fork for fork in forks if fork is not None)]


def read_proofs(data: bytes, where: str) -> list[Evidence | Fork]:
    """Return the proofs in a file of `CheckedEvidence.line`s; raise `UsageError` with the line's number."""
    found = []
    if len(data) > MAX_PROOFS_FILE:
        raise UsageError(f"{where}: has over {MAX_PROOFS_FILE:,} bytes, which no file of proofs has")
    for number, line in enumerate(data.splitlines(), 1):
        try:
            found.append(_decode(bytes.fromhex(json.loads(line)["proof"])))
        except (ValueError, KeyError, TypeError, RecursionError, PeerError):
            raise UsageError(
                f"{where}, line {number}: not what `hushcast admin directory evidence --json` prints"
            ) from None
    return found


def checked(proof: Evidence | Fork, network: bytes) -> CheckedEvidence:
    """Check a proof of a network; raise `UsageError` if it proves nothing.

    Whether the accused are directories of the network is for the caller: anybody can accuse a key of his own.
    """
    try:
        if isinstance(proof, Evidence):
            epoch = check_evidence(proof, network)
            return CheckedEvidence("two statements", epoch, (proof.accused.hex(),), proof)
        head = decode_head(proof.first.head)
        accused = tuple(one.accused.hex() for one in who_forked(proof, network, head.authorities))
        return CheckedEvidence("two heads", head.epoch, accused, proof)
    except (PeerError, msgspec.MsgspecError) as error:
        raise UsageError(f"this proves nothing: {error}") from None
