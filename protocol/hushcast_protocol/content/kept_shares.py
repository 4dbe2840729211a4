"""The shares of what one keeper keeps: by trunk and day, by the giver who handed in, small bodies apart.

Half of all room, and half of each trunk's on a day, is for bodies of 4 KiB and less. Where a half is too
full, *the giver that handed in most of it* gives way, its oldest message first. So one that floods a trunk,
or makes up trunks, loses its own. Of a message that several hand in, whoever has handed in least has it: a
flood through one does not take with it what another one handed in, too.

At a relay of the overlay a giver is an origin; a flood that comes through all origins, as strangers can make
one, takes the day that it is aimed at. A server, or the root of brokers, knows no origins: there a giver is
who handed in, if that is known, *on one day*, so that a flood takes nothing of the days before it.
"""

from __future__ import annotations

from typing import NamedTuple

from hushcast_protocol.content.messages import HEADER, SEAL

MAX_KEPT = 256 * 1024 * 1024  # bytes kept by one relay: as its spool; 14 days of 1,000 quiet topics take 4 MB
MAX_KEPT_OF_TRUNK = 32 * 1024 * 1024  # bytes of these for one trunk on one day; 18,000 of the smallest
KEPT_BESIDE = 640  # bytes that a message counts beside its body: record, index and what memory knows of it
SMALL_BODY = HEADER + 4 * 1024 + SEAL  # bytes, with a payload of up to 4 KiB
_SMALLEST = HEADER + 1024 + SEAL  # bytes
_NEXT = HEADER + 16 * 1024 + SEAL  # bytes of the smallest body that is not small
MAX_KEPT_IDS = (MAX_KEPT_OF_TRUNK // 2) // (_SMALLEST + KEPT_BESIDE) + (MAX_KEPT_OF_TRUNK // 2) // (
    _NEXT + KEPT_BESIDE
)
"""Of a trunk and day, 10,261: one answer of 350 kB holds the ids of all."""

MAX_OTHERS = 7  # that are remembered of a message beside the one that has it, the first ones
MAX_KNOWN_GIVERS = 4_096  # that stand in memory once; of a server's, each day has others
PASSED_ON = 32  # messages that one more may have go to others of theirs, some 1 ms

TRUNK_DAY_SIZE = 24  # bytes

Giver = bytes
"""Who handed in: what names one to the keeper."""


def trunk_day(day: int, trunk: bytes) -> bytes:
    """Return the name of a trunk's day, of 24 bytes; in their order the days are."""
    return day.to_bytes(8, "big") + trunk


def day_of_trunk(name: bytes) -> int:
    """Return the day of a trunk's day."""
    return int.from_bytes(name[:8], "big")


class KeptEntry(NamedTuple):
    """What is known of a message that is kept."""

    size: int
    """Bytes of its body."""
    giver: Giver
    """Who handed it in."""
    epoch: int
    """In which it came."""
    others: tuple[Giver, ...] = ()
    """Who handed it in, too."""


class _Half:
    """The messages of one half: small ones, or the others."""

    __slots__ = ("_full", "_most", "_most_of_trunk", "_of_giver", "_of_trunk", "_piles", "_trunks", "size")

    def __init__(self, most: int, most_of_trunk: int) -> None:
        self._most = most
        self._most_of_trunk = most_of_trunk
        self._piles: dict[Giver, dict[bytes, dict[bytes, int]]] = {}  # by giver and trunk, by id, in order
        self._of_giver: dict[Giver, int] = {}
        self._of_trunk: dict[bytes, dict[Giver, int]] = {}
        self._trunks: dict[bytes, int] = {}
        self._full: dict[bytes, None] = {}
        self.size = 0

    def handed_in(self, giver: Giver, name: bytes) -> int:
        """Return the bytes that count for a giver: of a trunk's day that is too full, those of that alone."""
        counted = self._of_trunk[name] if name in self._full else self._of_giver
        return counted.get(giver, 0)

    def add(self, name: bytes, message: bytes, size: int, giver: Giver) -> None:
        self._piles.setdefault(giver, {}).setdefault(name, {})[message] = size
        self._change(name, giver, size)
        if self._trunks[name] > self._most_of_trunk:
            self._full[name] = None

    def remove(self, name: bytes, message: bytes, giver: Giver) -> None:
        piles = self._piles[giver]
        size = piles[name].pop(message)
        if not piles[name]:
            del piles[name]
        if not piles:
            del self._piles[giver]
        self._change(name, giver, -size)

    def _change(self, name: bytes, giver: Giver, size: int) -> None:
        self.size += size
        _count(self._of_giver, giver, size)
        _count(self._of_trunk.setdefault(name, {}), giver, size)
        _count(self._trunks, name, size)
        if not self._of_trunk[name]:
            del self._of_trunk[name]
        if self._trunks.get(name, 0) <= self._most_of_trunk:
            self._full.pop(name, None)

    def over(self, is_newest: bool = False) -> tuple[bytes, bytes] | None:
        """Return the trunk's day and id of the message that gives way next, `None` where there is room.

        It is the oldest of who handed in most, or the newest.
        """
        if self._full:
            name = next(iter(self._full))
            givers = self._of_trunk[name]
            giver = max(givers, key=givers.__getitem__)
        elif self.size > self._most:
            giver = max(self._of_giver, key=self._of_giver.__getitem__)
            piles = self._piles[giver]
            name = next(reversed(piles) if is_newest else iter(piles))
        else:
            return None
        pile = self._piles[giver][name]
        return name, next(reversed(pile) if is_newest else iter(pile))


def _count(sizes: dict[bytes, int], name: bytes, size: int) -> None:
    sizes[name] = sizes.get(name, 0) + size
    if not sizes[name]:
        del sizes[name]


class KeptShares:
    """What one keeper keeps, in memory: all but the bodies."""

    def __init__(self, most: int | None = None) -> None:
        """`most` are the bytes of all, `MAX_KEPT` unless given; an eighth of them is for a trunk's day."""
        of_trunk = MAX_KEPT_OF_TRUNK if most is None else most // 8
        most = MAX_KEPT if most is None else most
        self._kept: dict[bytes, dict[bytes, KeptEntry]] = {}  # by trunk and day, by id
        self._givers: dict[Giver, Giver] = {}  # each once: there are thousands of entries of each
        self._small = _Half(most // 2, of_trunk // 2)
        self._large = _Half(most // 2, of_trunk // 2)

    def __len__(self) -> int:
        """Return how many trunks' days something is kept of."""
        return len(self._kept)

    def __contains__(self, name: bytes) -> bool:
        """Tell whether anything is kept of a trunk's day."""
        return name in self._kept

    @property
    def size(self) -> int:
        """The bytes that are kept, with what counts beside them."""
        return self._small.size + self._large.size

    def find(self, name: bytes, message: bytes) -> KeptEntry | None:
        """Return what is known of a message of a trunk's day, `None` if it is not kept."""
        return self._kept.get(name, {}).get(message)

    def ids(self, name: bytes, epoch: int | None = None) -> tuple[bytes, ...]:
        """Return the ids of a trunk's day in ascending order, all or those that came in an epoch."""
        kept = self._kept.get(name, {})
        return tuple(sorted([one for one, entry in kept.items() if epoch is None or entry.epoch == epoch]))

    def before(self, day: int) -> list[bytes]:
        """Return the trunks' days of which something is kept, of days before one."""
        first = trunk_day(day, b"")
        return [name for name in self._kept if name < first]

    def add(self, name: bytes, message: bytes, entry: KeptEntry) -> list[tuple[bytes, bytes, KeptEntry]]:
        """Note a message that is not kept yet; return what gives way for it, perhaps itself: 17 at most."""
        entry = entry._replace(giver=self._known(entry.giver), others=tuple(map(self._known, entry.others)))
        half = self._put(name, message, entry)
        gone, passed = [], 0
        while (found := half.over(is_newest=passed == PASSED_ON)) is not None:
            if passed < PASSED_ON and self._pass_on(*found):
                passed += 1
            else:
                gone.append((*found, self.remove(*found)))
        return gone

    def hand_in_again(self, name: bytes, message: bytes, giver: Giver) -> KeptEntry | None:
        """Note that another one hands in what is kept; return what is known of it, if that is new."""
        entry = self._kept[name][message]
        if giver in (entry.giver, *entry.others) or len(entry.others) >= MAX_OTHERS:
            return None
        self._kept[name][message] = entry._replace(others=(*entry.others, self._known(giver)))
        self._pass_on(name, message)
        return self._kept[name][message]

    def _pass_on(self, name: bytes, message: bytes) -> bool:
        """Have whoever of its givers has handed in least have a message; tell whether that is another one."""
        entry = self._kept[name][message]
        half, size = self._half(entry), entry.size + KEPT_BESIDE
        heir = min(entry.others, key=lambda one: half.handed_in(one, name), default=entry.giver)
        if half.handed_in(heir, name) + size >= half.handed_in(entry.giver, name):
            return False
        others = tuple(one for one in (entry.giver, *entry.others) if one != heir)
        self.remove(name, message)
        self._put(name, message, entry._replace(giver=heir, others=others))
        return True

    def _known(self, giver: Giver) -> Giver:
        if giver not in self._givers and len(self._givers) >= MAX_KNOWN_GIVERS:
            self._givers.clear()  # who comes again stands there twice
        return self._givers.setdefault(giver, giver)

    def _put(self, name: bytes, message: bytes, entry: KeptEntry) -> _Half:
        self._kept.setdefault(name, {})[message] = entry
        half = self._half(entry)
        half.add(name, message, entry.size + KEPT_BESIDE, entry.giver)
        return half

    def remove(self, name: bytes, message: bytes) -> KeptEntry:
        """Note that a message is not kept any more; return what was known of it."""
        entry = self._kept[name].pop(message)
        if not self._kept[name]:
            del self._kept[name]
        self._half(entry).remove(name, message, entry.giver)
        return entry

    def _half(self, entry: KeptEntry) -> _Half:
        return self._small if entry.size <= SMALL_BODY else self._large
