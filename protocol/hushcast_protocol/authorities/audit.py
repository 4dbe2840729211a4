"""The audit: what the authorities of a network show, checked as daemons do, and compared with each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hushcast_protocol.authorities.authority_set import Authorities
from hushcast_protocol.authorities.chain import ChainState
from hushcast_protocol.authorities.directory_requests import HeadAnswer
from hushcast_protocol.authorities.evidence import Fork
from hushcast_protocol.authorities.head_answers import follow, roster_of
from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.authorities.heads import CertifiedHead, Head, decode_head, head_digest
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.findings import Finding, bad, good, warning
from hushcast_protocol.base.roster import Network
from hushcast_protocol.base.wire import PublicKey

SHOWN = 8  # hexadecimal digits of a head's digest, or of a key: enough to read out to another operator


@dataclass(frozen=True)
class AuditedAuthority:
    """What one authority showed: heads of one epoch after the other, or why there is none."""

    name: str
    """What it is called in findings."""
    agreed: Sequence[HeadAnswer] = ()
    problem: str | None = None


@dataclass(frozen=True)
class Audit:
    """What was found, and the proofs of it."""

    findings: list[Finding]
    forks: list[Fork]
    newest: Head | None = None
    """The newest head that was shown, unless there are two of an epoch."""


@dataclass(frozen=True)
class AuditedShards:
    """What one authority served of all that a head stands for in a network that is cut into shards.

    Parts are shards, each with its leaf and its slice, and pieces of the guide.
    """

    name: str
    asked: int
    """How many parts there are."""
    lacking: int
    """Parts that it did not show."""
    wrong: Sequence[str] = ()
    """What it served else than the head stands for: a line each."""

    @property
    def finding(self) -> Finding:
        """What is to be said of it."""
        check = f"{self.name}, shards"
        if self.wrong:
            text = f"{len(self.wrong)} of {self.asked} parts do not hold: {self.wrong[0]}"
            return bad(check, text, "tell the other operators")
        if self.lacking:
            text = f"{self.lacking} of {self.asked} parts were not shown"
            return warning(check, text, "ask its operator, if that lasts")
        return good(check, f"all {self.asked} parts are served, and hold")


def called(number: int | None, key: PublicKey) -> str:
    """Return what people call a directory: by its place in the set, from 1, or `None`, and its key."""
    place = "a directory of another set" if number is None else f"directory {number}"
    return f"{place} ({key.hex()[:SHOWN]}…)"


def audit(network: Network, pinned: Authorities, answers: Sequence[AuditedAuthority]) -> Audit:
    """Check what each authority shows, from the pinned set on, and compare the heads of each epoch."""
    state = ChainState(pinned)
    heads: dict[int, dict[bytes, CertifiedHead]] = {}
    forks: list[Fork] = []
    found: list[tuple[str, Finding | Head]] = []
    for one in answers:
        shown = _checked(one, network, state)
        if isinstance(shown, Fork):
            forks.append(shown)
            epoch = decode_head(shown.first.head).epoch
            found.append((one.name, bad(one.name, f"shows two heads of epoch {epoch}", _BEGIN_ANEW)))
            continue
        if isinstance(shown, Finding):
            found.append((one.name, shown))
            continue
        for certified in shown:
            head = decode_head(certified.head)
            heads.setdefault(head.epoch, {})[head_digest(certified.head)] = certified
        found.append((one.name, decode_head(shown[-1].head)))
    forks += [Fork(*list(of_epoch.values())[:2]) for of_epoch in heads.values() if len(of_epoch) > 1]
    newest = max(heads, default=-1)
    findings = [one if isinstance(one, Finding) else _told(name, one, newest) for name, one in found]
    agreed = None if forks or newest < 0 else decode_head(next(iter(heads[newest].values())).head)
    return Audit([*findings, _agreement(heads, newest, forks)], forks, agreed)


_BEGIN_ANEW = "none of their rosters is to be taken: tell the operators, who have to begin anew"


def _checked(
    one: AuditedAuthority, network: Network, state: ChainState
) -> list[CertifiedHead] | Finding | Fork:
    """Return the heads that an authority shows, oldest first, or what is wrong with them."""
    if one.problem is not None:
        return warning(one.name, f"not reached: {one.problem}", "ask its operator, if that lasts")
    if not any(answer.heads for answer in one.agreed):
        return warning(one.name, "has no head yet", "wait until enough relays have registered")
    last: list[CertifiedHead] = []
    try:
        for answer in one.agreed:
            if not answer.heads:
                continue
            after = follow(state, answer.heads, network.id)
            if after.fork is not None:
                return after.fork
            roster_of(answer, network)
            last.append(answer.heads[-1])
    except PeerError as error:
        return bad(one.name, f"shows what does not hold: {error}", "tell the other operators")
    return last


def _told(name: str, head: Head, newest: int) -> Finding:
    text = f"epoch {head.epoch}, {inside_of(head).count} relays"
    if head.epoch < newest:
        return warning(name, f"{text}: {newest - head.epoch} behind", "ask its operator, if that lasts")
    return good(name, text)


def _agreement(heads: dict[int, dict[bytes, CertifiedHead]], newest: int, forks: list[Fork]) -> Finding:
    if forks:
        epochs = sorted({decode_head(one.first.head).epoch for one in forks})
        text = f"two heads with a quorum each, of {_epochs(epochs)}"
        return bad("agreement", text, _BEGIN_ANEW)
    if newest < 0:
        return bad("agreement", "no head was shown", "ask again later, or ask the operators")
    (certified,) = heads[newest].values()
    head = decode_head(certified.head)
    digest = head_digest(certified.head).hex()[:SHOWN]
    signed = f"signed by {len(certified.marks)} of {len(head.authorities.members)}"
    text = f"epoch {newest} is {digest}…, {signed}"
    order = sorted(heads)
    gaps = [later for earlier, later in pairwise(order) if later != earlier + 1]
    if gaps:
        text += f"; none of the epoch before {_epochs(gaps)}"
    faults = inside_of(head).faults
    if faults:
        return warning(
            "agreement", f"{text}; {len(faults)} voted twice", "`hushcast admin directory evidence`"
        )
    return good("agreement", text)


def _epochs(epochs: Iterable[int]) -> str:
    return "epoch " + ", ".join(str(epoch) for epoch in epochs)
