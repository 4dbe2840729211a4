"""The beacon: a value a day that nobody foresees, of secrets that authorities commit to and then reveal.

    epochs of the day before    ballots have     heads have
    0 to 5                      a commitment     those of before, and new ones
    6 to 11                     the secret       those secrets that fit their commitments
    12 to 23                    nothing          the beacon, if enough revealed; who committed and did not

The value is drawn from secrets of n − q + 1 authorities at least, so that of one honest one is among them.
Whoever reveals last may see what comes and keep silent: with f who do, the best of 2^f values is theirs. They
are named, and left out when the day after's is drawn. Without enough secrets there is no beacon, and the last
one stays: a value of last resort could be forced, and so foreseen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hushcast_protocol.authorities.authority_set import Authorities
from hushcast_protocol.authorities.ballots import Ballot
from hushcast_protocol.authorities.head_inside import Beacon, BeaconShare, BeaconState
from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.wire import PublicKey, encode

REVEALING, DRAWN = 6, 12  # epochs of a day from which on secrets are revealed, and tomorrow's beacon is drawn
NOTHING = BeaconState(None, None, (), (), ())

DrawnBefore = tuple[int, BeaconState]
"""The epoch of the head before, and the draw in it."""


def day_of(epoch: int) -> int:
    """Return the day of an epoch."""
    return epoch // EPOCHS_A_DAY


def secret_of(seed: Seed, network: bytes, day: int) -> bytes:
    """Return an authority's secret for a day (32 bytes): from its key, so a restart does not lose it."""
    return digest(Domain.BEACON_SECRET, network, encode(day), key=seed.reveal())


def commitment(network: bytes, day: int, author: PublicKey, secret: bytes) -> bytes:
    """Return what an authority shows of its secret first (32 bytes): nobody can show it as its own."""
    return digest(Domain.BEACON_COMMIT, network + encode(day) + author, secret)


def to_say(seed: Seed, network: bytes, epoch: int) -> tuple[bytes | None, bytes | None]:
    """Return the commitment and the secret of an authority's ballot for an epoch, `None` for neither."""
    phase, day = epoch % EPOCHS_A_DAY, day_of(epoch) + 1
    secret = secret_of(seed, network, day)
    if phase < REVEALING:
        return commitment(network, day, seed.public(), secret), None
    return None, secret if phase < DRAWN else None


def advance(
    last: DrawnBefore | None,
    network: bytes,
    epoch: int,
    authorities: Authorities,
    ballots: Mapping[bytes, Ballot],
) -> BeaconState:
    """Return the draw of an epoch's head, from that of the head before and the ballots that count."""
    today = day_of(epoch)
    draw = _at(today, last)
    phase = epoch % EPOCHS_A_DAY
    if phase < REVEALING:
        fresh = {author: one.commit for author, one in ballots.items() if author not in draw.left_out}
        return BeaconState(draw.today, None, _with(draw.commits, fresh), (), draw.left_out)
    committed = {share.author: share.value for share in draw.commits}
    if phase < DRAWN:
        shown = {
            author: one.reveal
            for author, one in ballots.items()
            if one.reveal is not None
            and committed.get(author) == commitment(network, today + 1, author, one.reveal)
        }
        return BeaconState(draw.today, None, draw.commits, _with(draw.reveals, shown), draw.left_out)
    beacon = None
    if len(draw.reveals) >= authorities.rounds:
        value = digest(Domain.BEACON, network + encode(today + 1), encode(draw.reveals))
        beacon = Beacon(today + 1, value)
    silent = committed.keys() - {share.author for share in draw.reveals}
    return BeaconState(draw.today, beacon, draw.commits, draw.reveals, tuple(sorted(silent)))


def _at(today: int, last: DrawnBefore | None) -> BeaconState:
    """Return the draw as it stands when a day's epoch begins."""
    if last is None:
        return NOTHING
    then, draw = day_of(last[0]), last[1]
    if then == today:
        return draw
    newest = draw.tomorrow if draw.tomorrow is not None and draw.tomorrow.day <= today else draw.today
    return BeaconState(newest, None, (), (), draw.left_out if then == today - 1 else ())


def _with(shares: Iterable[BeaconShare], fresh: Mapping[bytes, bytes | None]) -> tuple[BeaconShare, ...]:
    """Add what is new, in order of authors; the first of each stands."""
    held = {share.author: share for share in shares}
    for author, value in fresh.items():
        if value is not None:
            held.setdefault(author, BeaconShare(author, value))
    return tuple(held[author] for author in sorted(held))
