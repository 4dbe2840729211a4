"""What a directory's doctor looks at beside what every daemon's does: rosters, relays, the others."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from hushcast_directory.server.authority_driver import AuthorityDriver
from hushcast_directory.server.kept_evidence import kept_proofs
from hushcast_protocol.authorities.audit import called
from hushcast_protocol.authorities.authority_set import Authorities
from hushcast_protocol.authorities.beacon import DRAWN
from hushcast_protocol.authorities.chain import Chain
from hushcast_protocol.authorities.evidence import Evidence
from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.authorities.heads import Head, decode_head
from hushcast_protocol.authorities.machine import Authority
from hushcast_protocol.authorities.network_wire import wire_by
from hushcast_protocol.base.epochs import EPOCHS_A_DAY, Calendar
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.findings import Finding, bad, good, warning
from hushcast_protocol.base.wire import PublicKey, RelayId
from hushcast_runtime.wording import counted, listed

_WAIT = "wait: it goes on by itself"


def examine_alone(agreeing: AuthorityDriver, known: int, first: int, epoch: int) -> list[Finding]:
    """Look, as the one directory of a network, at the time and the newest roster.

    `known` relays have registered, `first` must have before the first roster; it is `epoch` now.
    """
    if agreeing.machine is None:
        return [_reads()]
    found = _time(agreeing.doubt) + examine_restored(agreeing.silence)
    if agreeing.epoch is None:
        return [*found, _no_roster(known, first, "")]
    return [*found, _roster(agreeing.epoch, epoch), _relays(agreeing.relays, "listed")]


def examine_one_of_several(
    agreeing: AuthorityDriver, state: Path, known: int, first: int, epoch: int
) -> list[Finding]:
    """Look, as one of several directories, at all that they agree on; arguments as of `examine_alone`.

    `state` is the directory in which evidence is.
    """
    silence, machine = agreeing.silence, agreeing.machine
    if machine is None:
        return [_reads()]
    found = _time(agreeing.doubt) + examine_restored(silence)
    chain, head = machine.chain, machine.chain.head
    found += examine_fork(chain)
    if agreeing.epoch is None or head is None:
        found.append(_no_roster(known, first, " here"))
    else:
        found.append(_roster(agreeing.epoch, epoch, chain.epoch - agreeing.epoch))
        found.append(_relays(agreeing.relays, "with a seat", agreeing.waiting))
    found += examine_votes(machine) if silence is None else []
    found += examine_others(agreeing.peers.reach(), chain, machine.key)
    if head is not None and head.authorities.is_spoken:
        found += [examine_faults(head, machine.key), examine_beacon(head, machine.key)]
    found.append(examine_evidence(state, machine.key, _in_charge(chain).keys))
    member = chain.named().get(machine.key)
    if agreeing.peers.count and member is not None:
        found.append(examine_address(member.address, agreeing.address))
    return found


def _reads() -> Finding:
    return warning("roster", "not known yet: what was kept is being read", _WAIT)


def _time(problem: str | None) -> list[Finding]:
    if problem is None:
        return []
    return [bad("time", problem, "compare the clock with another (timedatectl); rosters go on by themselves")]


def examine_restored(silence: str | None) -> list[Finding]:
    """Look whether nothing is signed because a backup was restored."""
    return [] if silence is None else [warning("restored", silence, _WAIT)]


def examine_wire(machine: Authority | None, calendar: Calendar, epoch: int) -> list[Finding]:
    """Look whether this program speaks what the network speaks, and goes on to."""
    head = machine.chain.head if machine is not None else None
    return [] if head is None else wire_by(head, epoch).examine(calendar)


def _no_roster(known: int, first: int, where: str) -> Finding:
    told = f"none yet: {known} of {counted(first, 'relay')} that the first one waits for are known{where}"
    return warning("roster", told, "relays register by themselves: `first_roster` says how many it waits for")


def _roster(served: int, epoch: int, behind: int = 0) -> Finding:
    """Look at the newest roster; `behind` it are the epochs for which a newer one is known by its head."""
    age = epoch - served
    if age <= 0:
        return good("roster", f"of epoch {served}, fresh")
    told = f"of epoch {served}, {counted(age, 'epoch')} old"
    if behind > 0:
        return bad("roster", f"{told}: of a newer one descriptors are missing", f"others have them; {_WAIT}")
    return bad("roster", told, "see what else is bad; daemons work on with the one they have")


def _relays(seated: int, how: str, waiting: int | None = None) -> Finding:
    told = f"{seated} {how}" + ("" if waiting is None else f", {waiting} that wait")
    if not seated:
        return warning("relays", told, "nobody can use the network: give out network.toml")
    return good("relays", told)


def examine_fork(chain: Chain) -> list[Finding]:
    """Look whether a quorum signed two rosters for one epoch."""
    fork = chain.state.fork
    if fork is None:
        return []
    told = f"two rosters of epoch {decode_head(fork.first.head).epoch}: this directory stopped"
    advice = "`hushcast admin directory evidence` names who signed both; the operators have to begin anew"
    return [bad("fork", told, advice)]


def examine_votes(machine: Authority) -> list[Finding]:
    """Look whether this directory votes, and whether its votes count."""
    chain, head, own = machine.chain, machine.chain.head, machine.key
    if chain.state.fork is not None:
        return []
    authorities = _in_charge(chain)
    coming = None if head is None else head.change
    is_coming = coming is not None and own in coming.authorities.keys
    if own not in authorities.keys:
        if coming is not None and is_coming:
            return [warning("votes", f"none yet: its set takes over in epoch {coming.epoch}", _WAIT)]
        advice = "have a quorum vote for a set with it (`authorities.next`), or stop it"
        return [bad("votes", "none: it is none of the directories of now", advice)]
    if head is None:
        return []
    voted = machine.kept.voted
    if voted < head.epoch:
        last = f"; its last one was for epoch {voted}" if voted >= 0 else ""
        advice = "who was away votes again in the epoch after the next; if it lasts, see what else is bad"
        return [warning("votes", f"none for the roster of epoch {head.epoch}{last}", advice)]
    if machine.agreed != head.epoch and not _signed(chain, own):
        told = f"others signed another roster of epoch {head.epoch} than follows from the votes here"
        advice = "its votes came late, or not at all: look at the clock, and at the other directories"
        return [warning("votes", told, advice)]
    if coming is not None and not is_coming:
        told = f"counted for epoch {head.epoch}; others take over in epoch {coming.epoch}"
        return [warning("votes", told, "if that is agreed, stop it then; else talk to the other operators")]
    return [good("votes", f"counted for epoch {head.epoch}")]


def _in_charge(chain: Chain) -> Authorities:
    """Return whose quorum signs the next head."""
    return chain.in_charge(chain.epoch + 1) or chain.state.authorities


def _signed(chain: Chain, own: PublicKey) -> bool:
    """Tell whether the newest head shows this directory's signature; others may have been faster."""
    newest, head = chain.state.newest, chain.head
    assert newest is not None
    assert head is not None
    return any(head.authorities.keys[mark.place] == own for mark in newest.marks)


def examine_others(reach: Mapping[PublicKey, bool | None], chain: Chain, own: PublicKey) -> list[Finding]:
    """Look which other directories are reached: `None` of one that was not tried yet."""
    if not reach:
        return []
    authorities = _in_charge(chain)
    away = [_name(key, authorities.keys) for key, is_there in sorted(reach.items()) if is_there is False]
    told = f"{sum(one is True for one in reach.values())} of {len(reach)} reached"
    told += f", not {listed(away)}" if away else ""
    untried = sum(one is None for one in reach.values())
    told += f", {untried} not tried yet" if untried else ""
    there = sum(reach.get(key) is True or key == own for key in authorities.keys)
    if there < authorities.quorum and not untried:
        advice = f"{authorities.quorum} have to agree: ask the others' operators, and look at Tor here"
        return [bad("other directories", told, advice)]
    if away or untried:
        return [warning("other directories", told, "ask their operators, if that lasts")]
    return [good("other directories", told)]


def examine_faults(head: Head, own: PublicKey) -> Finding:
    """Look whom the newest roster names as having voted twice."""
    faults = inside_of(head).faults
    if own in faults:
        told = f"the roster of epoch {head.epoch} names this directory: it voted twice"
        return bad("faults", told, _TWICE)
    if faults:
        names = listed(_name(key, head.authorities.keys) for key in faults)
        return warning(
            "faults", f"voted twice: {names}", "`hushcast admin directory evidence`; ask the operator"
        )
    return good("faults", "the newest roster names nobody")


_TWICE = "has another machine its key, or was an older state put back? Stop one, and talk to the operators"


def examine_beacon(head: Head, own: PublicKey) -> Finding:
    """Look at this directory's part in the value of the next day."""
    draw = inside_of(head).draw
    if own in draw.left_out:
        told = "left out for a day: it committed to a secret, and did not reveal it in time"
        return warning("beacon", told, f"it was away, or cut off; {_WAIT}")
    if head.epoch % EPOCHS_A_DAY >= DRAWN and draw.tomorrow is None:
        told = "none for the next day: too few directories revealed their secrets"
        return warning("beacon", told, "that of before stays, and newcomers of rules that draw wait a day")
    return good("beacon", "takes part" if own in (one.author for one in draw.commits) else "no part today")


def examine_evidence(state: Path, own: PublicKey, keys: Sequence[PublicKey]) -> Finding:
    """Look at the proofs in the state directory that somebody said two things; `keys` are of all."""
    try:
        proofs = [one for one in kept_proofs(state) if isinstance(one, Evidence)]
    except UsageError as error:
        return bad("evidence", f"cannot be read: {error}", "look at the disk")
    tally = Tally(one.accused for one in proofs)
    names = listed(f"{_name(key, keys)} ({number})" for key, number in sorted(tally.items()))
    told = f"{counted(len(proofs), 'proof')} kept" + (f", against {names}" if names else "")
    if own in tally:
        return bad("evidence", f"{told}: this directory itself is accused", _TWICE)
    if proofs:
        shown = "`hushcast admin directory evidence --json` shows it"
        advice = f"{shown}: send it to the others, and vote that one out"
        return warning("evidence", told, advice)
    return good("evidence", told)


def examine_address(announced: str, own: str | None) -> Finding:
    """Compare the address at which the others look for this directory with its own."""
    if announced == own:
        return good("address", "the others look for this directory where it is")
    told = "the others look for this directory at another address"
    return bad("address", told, "have a quorum vote for the new one (`authorities.next`)")


def examine_closed(names: frozenset[RelayId] | None, seated: Collection[RelayId]) -> list[Finding]:
    """Tell of a closed network how many of the relays that may be listed are."""
    if names is None:
        return []
    told = f"{counted(len(names), 'name')} loaded, {sum(relay in names for relay in seated)} of them listed"
    if not names:
        return [warning("closed network", told, "put names of relays into the file of `relays`, and reload")]
    return [good("closed network", told)]


def examine_expelled(left_out: int, named: int) -> Finding:
    """Tell how many relays are left out for losing messages, of those that the list names."""
    told = f"{counted(left_out, 'relay')} left out"
    if left_out < named:
        told += f", of {named} in the list: the others' time is over, or they are too many at once"
    return good("expelled", told)


def _name(key: PublicKey, keys: Sequence[PublicKey]) -> str:
    """Return what operators call a directory: as `hushcast admin directory audit` does."""
    return called(keys.index(key) + 1 if key in keys else None, key)
