"""The rosters a daemon holds: checked against the chain, compared with its peers', kept while none comes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import trio

from hushcast_directory.client.roster_source import RosterSource
from hushcast_overlay.cut_rosters import count, is_cut
from hushcast_overlay.neighbourhood import ROSTERS_HELD, Neighbourhood, staying
from hushcast_protocol.base.candidate_root import CandidateRoot
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.errors import AuthenticationError, PeerError, Refusal, unraised
from hushcast_protocol.base.keeping_rule import NOTHING_KEPT, KeepingRule
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.roster import Network, Roster, RosterView
from hushcast_protocol.base.roster_standing import RosterStanding, follow, restored
from hushcast_protocol.base.trusted_clock import published, roster_span
from hushcast_protocol.base.versions import wires
from hushcast_protocol.base.versions.manner import Manner
from hushcast_protocol.base.versions.network_wire import NetworkWire
from hushcast_protocol.base.versions.translations import Translation
from hushcast_protocol.base.versions.wires import OtherWire
from hushcast_protocol.base.wire import encode
from hushcast_runtime.clock import DaemonClock
from hushcast_runtime.context import Context
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.logs import log
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore
from hushcast_runtime.storage.store import Store, record_reader
from hushcast_runtime.transports.base import TransportError

DIGESTS_HELD = 48  # epochs for which a peer's view can be compared: two days
MAX_ABSENCE = 40  # epochs away after which the chain is not followed link by link any more
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds between attempts to get a roster that should be there

_KIND = RecordKind(
    "roster",
    StateOwner.OVERLAY_DAEMON,
    holds="rosters, and the earlier one that is acted on",
    lifetime="until there are newer ones",
    bound=f"the newest {ROSTERS_HELD}, and those acted on instead",
)
_STANDING = RecordKind(
    "roster-standing",
    StateOwner.OVERLAY_DAEMON,
    holds="of each roster, which one is acted on, and for how many epochs it was held back",
    lifetime="as long as its roster",
)


class _StoredStanding(msgspec.Struct, frozen=True, array_like=True):
    acted: int  # epoch of the roster acted on
    held: int


_decode_standing = record_reader(_StoredStanding, "standing")


class RosterKeeper:
    """The rosters of about now, and the digests of those before."""

    def __init__(
        self,
        network: Network,
        source: RosterSource,
        env: Environment,
        store: Store,
        counters: Counters,
        clock: DaemonClock | None = None,
    ) -> None:
        """`clock` hears of the rosters: they are witnesses of the time."""
        self.network = network
        self.calendar = network.calendar
        self._source = source
        self._env = env
        self._store = store
        self._counters = counters
        self._clock = clock or DaemonClock(env, network.calendar)
        self.whole = Neighbourhood(network.calendar, env)
        """All relays, by the rosters of epochs in which the network was not cut into shards."""
        self._standings: list[RosterStanding] = []
        self._digests: dict[int, bytes] = {}
        self._begin: int | None = None
        """Where to begin without a chain: after this epoch; `None`: with the newest."""
        self._doubted: int | None = None
        """An epoch for which a peer showed another roster."""
        self._changed = trio.lowlevel.ParkingLot()
        self._awaited: list[tuple[Callable[[], bool], Callable[..., None], tuple[Any, ...]]] = []
        self._heard: list[Callable[[], None]] = []
        self._began = env.now()
        self._answered_at: float | None = None
        self.problem: Exception | None = None
        """Why no roster came when one was last asked for; `None` where the directory answered."""
        self._asked = trio.Event()

    async def load(self) -> None:
        """Read back the rosters held before a restart, but those of a directory that is trusted no more."""
        await self._source.load()
        noted: dict[bytes, _StoredStanding] = {}
        rosters: dict[int, Roster] = {}

        def take(key: bytes, value: bytes) -> None:
            try:
                roster = self._source.restored(value)
            except AuthenticationError:
                log.warning("a roster kept from before is not by this directory: going on without it")
                return
            rosters[roster.epoch] = roster
            note = noted.get(key, _StoredStanding(roster.epoch, 0))
            self._hold(restored(roster, rosters.get(note.acted, roster), note.held))

        await restore(self._store, _STANDING, lambda key, value: noted.update({key: _decode_standing(value)}))
        # A signature for each relay of each roster.
        await restore(self._store, _KIND, take, compute=self._env.compute)
        self._pass_over_ahead()
        # One that was to be followed by another tells no time: the directory may have been away ever since.
        if self.newest is not None and self._env.now() <= roster_span(self.calendar, self.newest.epoch)[1]:
            self._clock.witness_roster(self.newest.epoch)

    @property
    def newest(self) -> Roster | None:
        """The roster with the highest epoch."""
        return self._standings[-1].roster if self._standings else None

    @property
    def keeping(self) -> KeepingRule:
        """The network's rule for what its relays keep, by the newest roster."""
        return NOTHING_KEPT if self.newest is None else self.newest.keeping

    def candidates(self, day: int) -> CandidateRoot | None:
        """Return what the newest roster says of who may be a keeper on a day; `None`: nothing."""
        told = () if self.newest is None else self.newest.candidates
        return next((one for one in told if one.day == day), None)

    @property
    def held(self) -> int:
        """How many rosters in a row, up to the newest, are not acted on: they lack too many relays."""
        return self._standings[-1].held if self._standings else 0

    @property
    def silence(self) -> float:
        """Seconds since the directory answered; before it did in this life, since the next roster was due."""
        if self._answered_at is not None:
            return self._env.elapsed() - self._answered_at
        if self.newest is None:
            return math.inf
        return max(0.0, self._env.now() - published(self.calendar, self.newest.epoch + 1))

    @property
    def wire(self) -> NetworkWire | None:
        """What the network speaks now, and goes on to; `None` while nobody told."""
        return self._source.wire(self.calendar.epoch(self._env.now()))

    @property
    def manner(self) -> Manner:
        """How this daemon shows itself where it says no name, in that wire."""
        return self.translation.manner

    @property
    def translation(self) -> Translation:
        """What that wire says otherwise than the newest."""
        return (self.wire or NetworkWire(wires.spoken().highest)).translation

    def spoken(self) -> int:
        """Return in which wire links are opened now; raise `OtherWire` where it is not spoken here."""
        if (wire := self.wire) is None:
            return wires.spoken().highest
        return wire.spoken()

    def rosters(self) -> list[Roster]:
        """Return the rosters held, ascending by epoch, the coming one among them."""
        return [standing.roster for standing in self._standings]

    def of_day(self, day: int) -> Roster | None:
        """Return the newest roster held of an epoch that is not after a day, or the oldest of all."""
        last = (day + 1) * EPOCHS_A_DAY - 1
        for standing in reversed(self._standings):  # the last, as a rule; a relay asks with each stranger
            if standing.roster.epoch <= last:
                return standing.roster
        return self._standings[0].roster if self._standings else None

    def view(self) -> RosterView | None:
        """Return what this daemon, as a relay, tells its peers to hold: the roster of an epoch that began.

        The coming one would show when this daemon fetched it.
        """
        epoch = self.calendar.epoch(self._env.now())
        begun = [standing.roster for standing in self._standings if standing.roster.epoch <= epoch]
        return RosterView(begun[-1].epoch, begun[-1].digest) if begun else None

    def compare(self, view: RosterView | None) -> None:
        """Raise `AuthenticationError` if a peer holds another roster than we for an epoch that has begun."""
        if view is None or view.epoch > self.calendar.epoch(self._env.now()):
            return
        if self._digests.get(view.epoch, view.digest) == view.digest:
            return
        self._counters.add("roster_mismatches")
        self._doubted = view.epoch
        log.error("a peer holds another roster for the same epoch: the directory may lie", epoch=view.epoch)
        raise AuthenticationError("a peer holds another roster for the same epoch")

    async def fresh(self) -> None:
        """Wait for the roster of this epoch, or until the directory was asked for it in vain."""
        if self.newest is None or self.newest.epoch < self.calendar.epoch(self._env.now()):
            await self._asked.wait()

    async def is_answered(self) -> bool:
        """Ask the directory now, and tell whether it answers; what is new is taken in its time."""
        try:
            await self._source.fetch(self.newest.epoch if self.newest else None, self.newest)
        except (TransportError, PeerError, Refusal):
            return False
        self._answered_at = self._env.elapsed()
        return True

    async def changed(self) -> None:
        """Wait for the next roster."""
        await self._changed.park()

    def each(self, function: Callable[[], None]) -> None:
        """Call `function` now, and whenever a fetch brought newer rosters."""
        self._heard.append(function)
        function()

    def once(self, is_so: Callable[[], bool], begin: Callable[..., None], *args: Any) -> None:
        """Call `begin` when `is_so`: now, or once a roster was taken; what may never come costs no task."""
        if is_so():
            begin(*args)
        else:
            self._awaited.append((is_so, begin, args))

    async def run(self, context: Context, pause: float = FIRST_PAUSE) -> None:
        """Fetch what was published, and from then on rosters as they are published."""
        before, asked = self.newest, False
        try:
            await self._compare_doubted()
            await self._catch_up()
            asked = bool(self._clock.jump())
            self.problem = None
        except (TransportError, PeerError, Refusal) as error:
            self.problem = unraised(error)
            log.warning("no roster from the directory", reason=str(error), again_in=round(pause))
        self._asked.set()
        for function in self._heard if self.newest is not before else ():
            function()
        pause = FIRST_PAUSE if self.newest is not before else min(2 * pause, self._longest_pause())
        if isinstance(self.problem, OtherWire):
            pause = self.calendar.epoch_seconds  # it ends by another release here, or by a new head there
        rest = pause * self._env.uniform(0.5, 1.0)
        context.timetable.after(rest, self._await_moment, context, pause, asked)

    def _await_moment(self, context: Context, pause: float, asked: bool, moment: float | None = None) -> None:
        moment = self._next_moment() if moment is None else moment
        # After a jump of the clock the directory is asked at once: it tells which time is right.
        if (left := moment - self._env.now()) > 0 and (asked or not self._clock.jump()):
            again = min(left, self._env.look_every)
            context.timetable.after(again, self._await_moment, context, pause, asked, moment)
        else:
            context.spawn(self.run, context, pause)

    async def _compare_doubted(self) -> None:
        """Where a peer showed another roster, see whether the directories agreed on two: once a fetch."""
        epoch, self._doubted = self._doubted, None
        if epoch is not None:
            await self._source.compare(epoch)

    async def _catch_up(self) -> None:
        self._pass_over_ahead()
        more = True
        while more:
            chained = self._can_follow()
            after = self.newest.epoch if self.newest is not None and chained else self._begin
            fetched = await self._source.fetch(after, self.newest)
            self._answered_at = self._env.elapsed()
            if fetched.roster is None:
                break
            await self._take(fetched.roster, fetched.record, chained)
            more = fetched.more
        if self.newest is not None:
            self._clock.witness_roster(self.newest.epoch)

    async def _take(self, roster: Roster, record: bytes, chained: bool) -> None:
        if self.newest is not None and roster.epoch <= self.newest.epoch:
            raise AuthenticationError("the directory gave an older roster than the one held")
        if self._clock.is_ahead(roster.epoch):
            self._clock.witness_roster(roster.epoch)
            self._begin = self.calendar.epoch(self._env.now()) - 2
            raise Refusal("the directory's roster is for a time to come: its clock or this one is wrong")
        if not chained and self.newest is not None:
            log.warning("away for too long to follow the chain of rosters: starting with the newest")
            self._hold_all([])
            self._digests.clear()
        standing = self._next_standing(roster)
        await self._keep(standing, record)
        self._hold(standing)
        self._counters.add("rosters_taken")
        self._counters.add("bytes_fetched", len(record))
        log.info("roster taken", epoch=roster.epoch, relays=count(roster))
        wire = self.wire
        if wire is not None and wire.is_left_behind and roster.epoch % EPOCHS_A_DAY == 0:
            log.warning("the network goes on to a wire that this program does not speak", epoch=wire.begins)
        self._tell(standing)
        self._changed.unpark_all()
        self._look()

    def _look(self) -> None:
        awaited, self._awaited = self._awaited, []
        for is_so, begin, args in awaited:
            self.once(is_so, begin, *args)

    def _next_standing(self, roster: Roster) -> RosterStanding:
        if is_cut(roster):
            return RosterStanding(roster, roster)  # it lists nobody: what is missing shows in shards
        return follow(self._standings[-1] if self._standings else None, roster)

    async def _keep(self, standing: RosterStanding, record: bytes) -> None:
        roster = standing.roster
        key, note = _key(roster.epoch), _StoredStanding(standing.acted.epoch, standing.held)
        wanted = {_key(epoch) for kept in staying(self._standings, standing) for epoch in _epochs_of(kept)}
        stored = {(kind, key) for kind in (_KIND, _STANDING) for key, _ in await self._store.scan(kind)}
        await self._store.write(
            *(Change(kind, old, None) for kind, old in sorted(stored) if old not in wanted),
            Change(_KIND, key, record),
            Change(_STANDING, key, encode(note)),
            *self._source.following(roster),
        )

    def _hold(self, standing: RosterStanding) -> None:
        self._hold_all(staying(self._standings, standing))
        self._digests[standing.roster.epoch] = standing.roster.digest
        for epoch in [epoch for epoch in self._digests if epoch <= standing.roster.epoch - DIGESTS_HELD]:
            del self._digests[epoch]

    def _hold_all(self, standings: list[RosterStanding]) -> None:
        self._standings = standings
        self.whole.standings = [standing for standing in standings if not is_cut(standing.roster)]

    def _tell(self, standing: RosterStanding) -> None:
        roster = standing.roster
        if standing.held:
            self._counters.add("rosters_held")
        if standing.held == 1:
            log.error(
                "a roster lacks too many relays and is held: many are gone, or the directory lies",
                epoch=roster.epoch,
                relays=len(roster.relays),
                before=len(standing.acted.relays),
            )
        published = self.calendar.epoch_start(roster.epoch) - self.calendar.lead
        settled = self.calendar.settled(self._env.now())
        if roster.epoch == settled and self._began < published:
            self._counters.add("rosters_late")
            log.warning(
                "a roster came after its time: the directory was away, or kept it back", epoch=roster.epoch
            )

    def _pass_over_ahead(self) -> None:
        """Act as if rosters for a time to come were not held: they were taken while the clock was wrong."""
        ahead = [held.roster.epoch for held in self._standings if self._clock.is_ahead(held.roster.epoch)]
        for epoch in ahead:
            log.warning("a roster for a time to come is passed over", epoch=epoch)
            self._digests.pop(epoch, None)
        self._hold_all([held for held in self._standings if held.roster.epoch not in ahead])

    def _can_follow(self) -> bool:
        epoch, newest = self.calendar.epoch(self._env.now()), self.newest
        return newest is not None and epoch - newest.epoch <= MAX_ABSENCE

    def _next_moment(self) -> float:
        """Unix time at which the next roster can be there; each daemon asks at a moment of its own."""
        now = self._env.now()
        if self.newest is not None:
            moment = published(self.calendar, self.newest.epoch + 1)
        elif self._source.awaits_first and self._begin is None:
            moment = published(self.calendar, self.calendar.epoch(now) + 1)
            if moment <= now:
                return 0.0
        else:
            return 0.0
        return moment + self._env.uniform(0.0, 0.5) * self.calendar.lead

    def _longest_pause(self) -> float:
        if self.newest is not None or self._source.awaits_first:
            return min(LONGEST_PAUSE, self.calendar.lead)
        return 4 * FIRST_PAUSE


def _key(epoch: int) -> bytes:
    return epoch.to_bytes(8, "big")


def _epochs_of(standing: RosterStanding) -> set[int]:
    return {standing.roster.epoch, standing.acted.epoch}
