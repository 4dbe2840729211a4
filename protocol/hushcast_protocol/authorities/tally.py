"""The tally: the head that follows from the ballots that count, one and the same for all who have these."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from hushcast_protocol.authorities.authority_set import Authorities
from hushcast_protocol.authorities.ballots import Ballot
from hushcast_protocol.authorities.beacon import advance, day_of
from hushcast_protocol.authorities.candidate_days import candidate_roots
from hushcast_protocol.authorities.cover_draw import cover_draw
from hushcast_protocol.authorities.head_inside import HeadInside, encode_inside, inside_of
from hushcast_protocol.authorities.heads import AuthorityChange, CertifiedHead, Head, decode_head, head_digest
from hushcast_protocol.authorities.listing import MAX_WAITING, ListedRelay, Listing, settle
from hushcast_protocol.authorities.shard_draw import drawn_by, most_seated, shardings_of
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.wire import PublicKey


@dataclass(frozen=True, slots=True)
class HeadBasis:
    """What a head goes on from: the newest that a ballot shows, or what a network began with."""

    digest: bytes
    head: Head | None = None
    listing: Listing | None = None
    """The relays that it stands for; `None` where nothing was before."""


def listed_by(authorities: Authorities, ballots: Iterable[Ballot]) -> tuple[ListedRelay, ...]:
    """Return who is listed: a relay with one descriptor, on the ballots of more than half of all authorities.

    Of all, not of those that were heard: else the fewer there are, the fewer it takes. One of them is honest,
    and so holds the descriptor.
    """
    tally = Tally(one for ballot in ballots for one in ballot.listed)
    return tuple(sorted(one for one, votes in tally.items() if votes >= authorities.majority))


def share_of_line(authorities: Authorities) -> int:
    """Return how many newcomers each authority may have all others list, of those that can wait.

    Everybody lists what each of the others brings. So of q honest authorities each lists so many of its own,
    and so many of each of n − q others, who may show each different ones: together no more than can wait.
    """
    return MAX_WAITING // (authorities.quorum * authorities.rounds)


def newest_shown(authorities: Authorities, ballots: Collection[Ballot]) -> CertifiedHead | None:
    """Return the head that the next one goes on from, `None` if no ballot shows one that counts.

    It goes by the ballots alone, which all honest authorities have alike, and by who is in charge; not by who
    was before, which who began with the set of now does not know. A head of the set in charge counts. One of
    another set does if more than n − q ballots show heads of that set that announce the same: one of these is
    an honest authority's, which followed the change.
    """
    shown = [(ballot.previous, decode_head(ballot.previous.head)) for ballot in ballots if ballot.previous]
    votes = Tally((head.authorities.signers, head.change) for _, head in shown)
    counting = [
        certified
        for certified, head in shown
        if head.authorities.signers == authorities.signers
        or (
            votes[head.authorities.signers, head.change] >= authorities.rounds
            and (head.change is None or head.epoch < head.change.epoch)
        )
    ]
    # By digest where there are two of one epoch: that is a fork, and whoever knows of it has stopped.
    return max(counting, key=lambda one: (decode_head(one.head).epoch, head_digest(one.head)), default=None)


def begins(authorities: Authorities, ballots: Collection[Ballot]) -> bool:
    """Tell whether a quorum of ballots says that there is no head yet."""
    return sum(ballot.previous is None for ballot in ballots) >= authorities.quorum


def head_basis(
    authorities: Authorities,
    ballots: Mapping[PublicKey, Ballot],
    own: PublicKey,
    first: HeadBasis | None,
    listings: Mapping[bytes, Listing],
) -> HeadBasis | None:
    """Return what the next head goes on from by the ballots that count; `None` if that is not known here.

    `first` is what the network begins with, where there is no head yet; `listings` are known, by root.
    Nothing that takes back the head on the ballot of `own` is assented to, nor what goes on from a head that
    cannot be read here.
    """
    newest, mine = newest_shown(authorities, ballots.values()), ballots.get(own)
    if newest is None:
        return first if begins(authorities, ballots.values()) else None
    head = decode_head(newest.head)
    if mine is not None and mine.previous is not None and decode_head(mine.previous.head).epoch > head.epoch:
        return None
    try:
        inside = inside_of(head)
    except PeerError:
        return None
    listing = listings.get(inside.root)
    return None if listing is None else HeadBasis(head_digest(newest.head), head, listing)


def in_charge_after(last: Head | None, epoch: int, authorities: Authorities) -> Authorities:
    """Return `authorities`, as the keys are known here, with the addresses and rules of the head before.

    Who lagged when the exchange began has older ones.
    """
    if last is None:
        return authorities
    coming = last.change
    found = coming.authorities if coming is not None and epoch >= coming.epoch else last.authorities
    return found if found.signers == authorities.signers else authorities


def count(
    network: bytes,
    epoch: int,
    authorities: Authorities,
    ballots: Mapping[bytes, Ballot],
    faults: Iterable[bytes],
    before: HeadBasis,
) -> tuple[Head, Listing] | None:
    """Return the head of an epoch and the relays it stands for, `None` if too few ballots count.

    `ballots` are by author, with certified heads in them; `faults` are the authors that cast two.
    """
    if len(ballots) < authorities.quorum:
        return None
    last = before.head
    authorities = in_charge_after(last, epoch, authorities)
    told_before = None if last is None else (last.epoch, inside_of(last))
    drawn_before = None if told_before is None else (told_before[0], told_before[1].draw)
    draw = advance(drawn_before, network, epoch, authorities, ballots)
    # One of an earlier day stays for shards; nobody is seated by an order that has been known for days.
    drawn = None if draw.today is None or draw.today.day != day_of(epoch) else draw.today.value
    listed = listed_by(authorities, ballots.values())
    size, held = authorities.shard_size, before.listing
    listing = settle(listed, held, epoch, authorities.admission, drawn, most_seated(held, epoch, size))
    is_known = drawn_before is not None and drawn_before[1].tomorrow == draw.tomorrow
    fresh = None if is_known else draw.tomorrow
    shards = drawn_by(network, held, epoch, listing.seats, fresh, size)
    listing = msgspec.structs.replace(listing, shards=shards)
    inside = HeadInside(
        listing.root,
        len(listing.seats),
        draw,
        tuple(sorted(faults)),
        shardings_of(network, listing),
        candidate_roots(network, told_before, before.digest, listing, authorities.keeping),
        cover_draw(told_before, before.digest, listing, authorities.cover, drawn),
    )
    change = _change(last, epoch, authorities, ballots.values())
    said = encode_inside(inside, authorities.wire)
    return Head(network, epoch, before.digest, authorities, change, said), listing


def _change(
    last: Head | None, epoch: int, authorities: Authorities, ballots: Iterable[Ballot]
) -> AuthorityChange | None:
    """Return the coming set: the one announced, or one that a quorum asks for, from a day's beginning on."""
    if last is not None and last.change is not None and epoch < last.change.epoch:
        return last.change
    wanted = Tally(ballot.next for ballot in ballots if ballot.next not in (None, authorities))
    for following, votes in wanted.items():
        if following is not None and votes >= authorities.quorum:
            # A whole day ahead, so that everybody has heard; at a change of day, for a beacon is of one set.
            return AuthorityChange((-(-epoch // EPOCHS_A_DAY) + 1) * EPOCHS_A_DAY, following)
    return None
