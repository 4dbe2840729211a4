"""Resumption: what an authority goes on from after a restart, or once its clock is set right.

That is what its machine kept, perhaps under a former key, or the last roster of a single directory. Where one
authority is alone, heads for a time to come can be taken back: nobody whose clock is right has taken one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from hushcast_directory.server.archive import Archive, ArchivedHead, epoch_key, epoch_of
from hushcast_directory.server.descriptors import Known
from hushcast_directory.server.former_rosters import last_signed
from hushcast_directory.server.kept_evidence import AUTHORITY, read_kept
from hushcast_directory.server.restoration import last_restored, signs_after
from hushcast_directory.server.roll import Roll
from hushcast_protocol.authorities.actions import AuthorityState
from hushcast_protocol.authorities.authority_set import Authorities
from hushcast_protocol.authorities.chain import ChainState, handed_over
from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.authorities.heads import decode_head
from hushcast_protocol.authorities.listing import Listing
from hushcast_protocol.authorities.machine import MAX_LISTINGS
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.roster import (
    Network,
    SignedRoster,
    check_descriptor,
    descriptor_digest,
    listed_descriptors,
)
from hushcast_protocol.base.wire import PublicKey, encode
from hushcast_runtime.environment import Compute
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore
from hushcast_runtime.storage.store import Store, damaged, record_reader

LISTING = RecordKind(
    "listing",
    StateOwner.DIRECTORY,
    holds="listings of heads",
    lifetime="until there are newer ones",
    bound=f"{MAX_LISTINGS}",
)
"""Kind of records of an authority: the listings of heads, each by its epoch."""
_read_listing: Callable[[bytes], Listing] = record_reader(Listing, "listing")


async def resume(
    roll: Roll, authorities: Authorities, restored: int = -1
) -> tuple[AuthorityState, Listing | None]:
    """Return what a machine begins with, and the listing of a single directory's last roster if it follows.

    `authorities` are those of the configuration, which count where nothing was kept. Up to an epoch
    `restored` it may have voted (`restoration.py`).
    """
    stored = [read_kept(value) for _, value in await roll.store.scan(AUTHORITY)]
    kept = stored[0] if stored else AuthorityState(ChainState(authorities))
    for handover in roll.succession.past:
        if kept.chain.authorities.keys == (handover.old,):
            kept = AuthorityState(handed_over(kept.chain, handover), kept.voted, kept.assented)
    kept = AuthorityState(kept.chain, max(kept.voted, restored), max(kept.assented, restored))
    own = (roll.seed.public(),)
    if kept.chain.newest is not None or kept.chain.authorities.keys != own:
        return kept, None
    last = await last_signed(roll.store, roll.network, roll.seed.public(), roll.succession.past)
    if last is None:
        return kept, None
    chain = ChainState(kept.chain.authorities, beginning=last.digest)
    return AuthorityState(chain, kept.voted, kept.assented), _listing_of(last, roll)


async def kept_listings(
    store: Store, archive: Archive, kept: AuthorityState, compute: Compute
) -> list[Listing]:
    """Return the listings of the last heads, the newest last.

    Raises `StoreError` where a directory alone has none of its newest head: then nobody can tell it.
    """
    shown, _ = archive.after(None)
    listings = [] if shown is None or shown.listing is None else [shown.listing]
    # One at a time: it may have 3 MB.
    await restore(store, LISTING, lambda _, value: listings.append(_read_listing(value)), at_once=1)
    newest = kept.chain.newest
    if len(kept.chain.authorities.members) == 1 and newest is not None:
        roots = await compute(lambda: {listing.root for listing in listings})
        if inside_of(decode_head(newest.head)).root not in roots:
            raise damaged("listing", "without it this directory cannot go on from its last head; ")
    return listings


def _listing_of(roster: SignedRoster, roll: Roll) -> Listing:
    """Return a single directory's last roster as the listing that a first head goes on from."""
    seats = []
    for signed in listed_descriptors(roster):
        held = check_descriptor(signed, roll.network)
        since = roster.relays[held.relay].since
        seats.append((held.relay, descriptor_digest(signed.body), held.difficulty, since))
    return Listing(roster.epoch, tuple(sorted(seats)), ())


def _checked(descriptors: Iterable[Signed], network: Network) -> list[Known]:
    return [(check_descriptor(signed, network), signed) for signed in descriptors]


class FutureHeads:
    """The heads for a time to come that one authority alone agreed on while its clock was wrong."""

    def __init__(self, key: PublicKey, roll: Roll, archive: Archive, compute: Compute) -> None:
        """`key` is the authority's."""
        self._compute = compute
        self._own = (key,)
        self._roll = roll
        self._archive = archive

    def has_leapt(self, now: float) -> bool:
        """Tell whether there are heads for the past and the future, but none for about now."""
        epoch = self._roll.calendar.epoch(now + self._roll.calendar.lead)
        held = self._archive.epochs
        return any(known < epoch for known in held) and {epoch, epoch + 1}.isdisjoint(held)

    async def take_back(self, kept: AuthorityState, now: float) -> Sequence[int] | None:
        """Forget those, and descriptors from then; return their epochs, `None` if there is nothing to forget.

        The chain goes on after the last head that remains, with its relays. What a machine kept is replaced
        on disk; begin it anew. Call it only if `now` is certain: otherwise the chain forks. Nothing is taken
        back that others had a part in, nor cuts into shards: then votes wait until that time has come.
        """
        if kept.chain.fork is not None or kept.chain.authorities.keys != self._own:
            return None
        calendar, roll = self._roll.calendar, self._roll
        latest = calendar.epoch(now + calendar.lead) + 1
        ahead = [epoch for epoch in self._archive.epochs if epoch > latest]
        has_voted = max(kept.voted, kept.assented) > latest
        if not ahead and not has_voted and not roll.has_early(now):
            return None
        if ahead and not await self._compute(self._is_own, kept.chain.since, ahead):
            return None
        shown, _ = self._archive.after(None, latest)
        known = await self._compute(_checked, () if shown is None else shown.descriptors, roll.network)
        changes = roll.take_back(now, latest, known)
        if ahead or has_voted:
            changes += self._archive.forget(ahead)
            changes += await self._chain_back_to(shown, kept)
        if await last_restored(roll.store) > latest:
            changes.append(signs_after(latest))
        await roll.store.write(*changes)
        return ahead

    async def _chain_back_to(self, shown: ArchivedHead | None, kept: AuthorityState) -> list[Change]:
        """Return what is to be written so that the chain goes on after a head, or begins again."""
        changes = [Change(LISTING, key, None) for key, _ in await self._roll.store.scan(LISTING)]
        if shown is None:
            await self._roll.follow(Listing(0, (), ()))
            chain, last = msgspec.structs.replace(kept.chain, newest=None), -1
        else:
            authorities, last = decode_head(shown.certified.head).authorities, epoch_of(shown.certified)
            chain = msgspec.structs.replace(kept.chain, newest=shown.certified, authorities=authorities)
            if shown.listing is not None:
                changes.append(Change(LISTING, epoch_key(last), encode(shown.listing)))
        back = AuthorityState(chain, min(kept.voted, last), min(kept.assented, last))
        return [*changes, Change(AUTHORITY, b"", encode(back))]

    def _is_own(self, since: int, ahead: Sequence[int]) -> bool:
        """Tell whether nobody else had a part in these heads, `since` is the first of the set of now."""
        heads = self._archive.heads(ahead)
        return since < ahead[0] and all(not inside_of(head).shards and head.change is None for head in heads)
