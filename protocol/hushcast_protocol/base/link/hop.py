"""The hop machine: what lies between this daemon and one other, from the queue to the last acknowledgement.

What is to be sent lies in a *spool* on disk that the machine does not see, from before it is enqueued until
the machine says `Settle`. In memory is what queue and windows of links take, in order; the rest is the
*backlog*, read back ahead of the window.

It is moved by calls (`enqueue`, `resume`, `want`, `unwant`), by what happens (`link_up`, `acknowledged`,
`link_ended`, `dial_failed`, `dial_unneeded`, `read_back`, `went_around`) and by time (`tick`, once `deadline`
has passed; besides, its driver closes a link whose own `deadline` has passed, and says `link_ended`). Each
returns what is to be done, in order (`hop_values.py`). Three states change side by side; `wanted`: there is a
queue, a backlog, or somebody who waits for a link.

Dialling
    state     event                             next      actions
    IDLE      wanted, and no link               DIALLING  Dial
    IDLE      last link ended, fruitless        PAUSED    -
    DIALLING  link up, dialled by us            IDLE      SendItems
    DIALLING  link up, dialled by the other     DIALLING  SendItems
    DIALLING  unneeded at its turn, or failed
              with a link or not wanted         IDLE      -
    DIALLING  failed, wanted                    PAUSED    -
    PAUSED    pause over                        DIALLING  Dial (IDLE if not wanted)
    PAUSED    first item after none waited      DIALLING  Dial
    PAUSED    link up                           IDLE      SendItems
    DIALLING  the last `unwant`, and not wanted IDLE      StopDialling
    PAUSED    the last `unwant`, and not wanted IDLE      -

Pauses double from `FIRST_BACKOFF` to `LONGEST_BACKOFF`, shortened at random, and end when the hop would count
as away. They begin anew after a link that was not fruitless (none of its items was acknowledged), after a
pause cut short, and when no link is wanted any more.

Backlog
    state    event                                        next     actions
    NONE     enqueued over MAX_QUEUE or while away;
             resume; link ended with items in its window;
             away; time to retry what was unrouted        SPOOLED  - (anew: `hop_backlog.py`)
    SPOOLED  present, and nothing in memory               READING  ReadBack
    SPOOLED  linked, not anew, queue below READ_AHEAD     READING  ReadBack
    SPOOLED  away, and no pause between detours           MOVING   GoAround
    READING  read something, or more was spooled since    SPOOLED  SendItems (not if to be read anew)
    READING  read nothing                                 NONE     -
    MOVING   found something, or more was spooled since   SPOOLED  - (a pause if nothing was moved)
    MOVING   found nothing                                NONE     -

Reach
    state    event                                        next     actions
    PRESENT  link ended or dial failed, and items waited
             `away_after` long without acknowledgement    AWAY     WentAway
    AWAY     link up                                      PRESENT  CameBack

Where the other end alone opens links (`HopRules.dials`), Dialling stays IDLE; without a link all is backlog.
An acknowledgement always answers with `Settle` and `Reroute`, then `SendItems` as the window allows; a link
over `MAX_LINKS_A_PEER` with `Close` of the oldest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Generic

from hushcast_protocol.base.backoff import Backoff
from hushcast_protocol.base.link.hop_backlog import SpoolBacklog
from hushcast_protocol.base.link.hop_link import MAX_UNACKNOWLEDGED, ItemT
from hushcast_protocol.base.link.hop_values import (
    BacklogState,
    Close,
    DialState,
    HopActions,
    HopCommand,
    HopRules,
    LinkT,
    Reroute,
    SendItems,
    Settle,
)

MAX_QUEUE = 4 * 1024 * 1024  # bytes waiting in memory for one next hop; more waits in the spool on disk
READ_AHEAD = 256 * 1024  # bytes in the queue below which a backlog is read on: a disk is slower than a window
FIRST_BACKOFF, LONGEST_BACKOFF = 1.0, 60.0  # seconds between attempts to reach a next hop
MAX_LINKS_A_PEER = 4  # two where both dial at once, two more whose end is not known yet after a restart
DETOUR_AFTER = 30.0  # seconds without an acknowledgement; a relay that restarts is back by then


class NextHop(Generic[LinkT, ItemT]):
    """One other daemon that this one sends to, or that only sends to this one."""

    # One for each link, most of them idle: what few need is made when they need it.
    __slots__ = (
        "_around_at",
        "_around_backoff",
        "_backoff",
        "_dial_at",
        "_queue",
        "_retry_at",
        "_rules",
        "_spooled",
        "_waiters",
        "_waiting_since",
        "dialling",
        "is_away",
        "links",
        "queued",
    )

    def __init__(self, rules: HopRules[ItemT]) -> None:
        """Begin without a link and with nothing to send."""
        self.links: tuple[LinkT, ...] = ()  # from the oldest to the newest, which items are sent on
        self.queued = 0
        """Bytes in the queue."""
        self.dialling = DialState.IDLE
        self.is_away = False
        self._rules = rules
        self._queue: list[ItemT] | tuple[()] = ()
        self._spooled: SpoolBacklog[ItemT] = SpoolBacklog()
        self._waiters = 0  # who wants a link whatever is queued
        self._waiting_since: float | None = None  # the last acknowledgement while items wait
        self._backoff: Backoff | None = None  # since it was not reached, or took nothing of what it was sent
        self._around_backoff: Backoff | None = None  # since no other next hop was there
        self._dial_at = self._around_at = self._retry_at = math.inf

    @property
    def backlog(self) -> BacklogState:
        """What becomes of the items that only the spool holds."""
        return self._spooled.state

    @property
    def deadline(self) -> float:
        """When `tick` is to be called; infinite if only what happens moves this hop."""
        return min(self._dial_at, self._around_at, self._retry_at)

    @property
    def is_wanted(self) -> bool:
        """Tell whether anything waits for a link."""
        return bool(self._queue or self.backlog or self._waiters)

    @property
    def needs_dial(self) -> bool:
        """Tell whether a dial whose turn has come is to go on."""
        return not self.links and self.is_wanted

    @property
    def is_unused(self) -> bool:
        """Tell whether all of this may be forgotten, but for whether the hop is away."""
        return not (self.links or self.dialling or self.is_wanted) and self._retry_at == math.inf

    def enqueue(self, items: Iterable[ItemT], now: float) -> HopActions[LinkT, ItemT]:
        """Send items, which the spool holds, after all that waits already."""
        if self._waiting_since is None:
            self._waiting_since = now
            if self.dialling is DialState.PAUSED:
                self._end_pause(forgive=True)
        if self.is_away or self.backlog or not self._is_within_reach():
            self._spooled.more()
        else:
            queue = self._queue or []
            for item in items:
                size = item.size
                if self.queued + size > MAX_QUEUE:
                    self._spooled.more()
                    break
                queue.append(item)
                self.queued += size
            self._queue = queue or ()
        return self._advance(now, [])

    def resume(self, now: float) -> HopActions[LinkT, ItemT]:
        """Send what the spool may hold since before a restart."""
        self._spooled.anew()
        self._waiting_since = now
        return self._advance(now, [])

    def retry_later(self, now: float) -> HopActions[LinkT, ItemT]:
        """Send what the spool holds again after a while: it had no route there, and there is no other."""
        self._retry_at = min(self._retry_at, now + LONGEST_BACKOFF)
        return []

    def want(self, now: float) -> HopActions[LinkT, ItemT]:
        """Have a link open until `unwant`, whatever there is to send."""
        self._waiters += 1
        return self._advance(now, [])

    def unwant(self) -> HopActions[LinkT, ItemT]:
        """Take one `want` back."""
        self._waiters -= 1
        if self.is_wanted:
            return []
        actions: HopActions[LinkT, ItemT] = (
            [HopCommand.STOP_DIALLING] if self.dialling is DialState.DIALLING else []
        )
        self._stop_dialling()
        return actions

    def link_up(self, link: LinkT, is_dialled: bool, now: float) -> HopActions[LinkT, ItemT]:
        """Take a new link; `is_dialled` if it is what `HopCommand.DIAL` asked for."""
        actions: HopActions[LinkT, ItemT] = []
        if len(self.links) >= MAX_LINKS_A_PEER:
            actions.append(Close(self.links[0]))
            self._remove(self.links[0])
        # After a restart the peer may be back on a new link before the old one is known to be dead.
        self.links += (link,)
        if self.dialling is DialState.PAUSED:
            self._end_pause(forgive=True)
        elif is_dialled:
            self.dialling = DialState.IDLE
        if self.is_away:
            self.is_away = False
            self._around_at, self._around_backoff = math.inf, None
            self._waiting_since = now if self.backlog else None
            actions.append(HopCommand.CAME_BACK)
        return self._advance(now, actions)

    def acknowledged(
        self, link: LinkT, number: int, unrouted: Iterable[int], now: float
    ) -> HopActions[LinkT, ItemT]:
        """Take an acknowledgement that came over a link (`LinkState.acknowledge`)."""
        actions: HopActions[LinkT, ItemT] = []
        taken, refused = link.acknowledge(number, unrouted)
        if not self._rules.goes_around:
            taken, refused = taken + refused, []
        if taken:
            actions.append(Settle(taken))
        if refused:
            actions.append(Reroute(refused))
        if actions:
            self._waiting_since = now if self.backlog or self._in_memory() else None
        return self._advance(now, actions)

    def link_ended(self, link: LinkT, away_after: float, now: float) -> HopActions[LinkT, ItemT]:
        """Hear that a link is gone.

        `away_after` are the seconds of silence after which the hop counts as away: 0 where nobody knows where
        it is, infinite where it is waited for however long it takes.
        """
        if link not in self.links:
            return []
        self._remove(link)
        actions = self._note_away(away_after, now)
        if (
            self._backoff is not None
            and self.dialling is DialState.IDLE
            and not self.links
            and self._rules.dials
        ):
            self._pause(self._backoff, away_after, now)
        return self._advance(now, actions)

    def dial_failed(self, away_after: float, now: float) -> HopActions[LinkT, ItemT]:
        """Hear that the hop was not reached; `away_after` as in `link_ended`."""
        self._backoff = self._backoff or self._new_backoff()
        self._queue = [item for item in self._queue if self._rules.holds(item)] or ()
        self.queued = sum(item.size for item in self._queue)
        self._note_silence()
        actions = self._note_away(away_after, now)
        if self.links or not self.is_wanted:
            self._stop_dialling()
        else:
            self._pause(self._backoff, away_after, now)
        return self._advance(now, actions)

    def dial_unneeded(self, now: float) -> HopActions[LinkT, ItemT]:
        """Hear that a dial's turn came when it was not needed any more (`needs_dial`)."""
        self._stop_dialling()
        return self._advance(now, [])

    def read_back(self, items: Sequence[ItemT], now: float) -> HopActions[LinkT, ItemT]:
        """Take what was read from the spool; if that is nothing, there was nothing."""
        self._spooled.end(bool(items))
        if items and not (self._spooled.is_anew or self.is_away) and self._is_within_reach():
            self._queue = [*self._queue, *items]
            self.queued += sum(item.size for item in items)
            self._spooled.took(items[-1])
        self._note_silence()
        return self._advance(now, [])

    def went_around(self, found: bool, moved: bool, now: float) -> HopActions[LinkT, ItemT]:
        """Hear whether the spool had items, and whether some of them wait for other hops now."""
        self._spooled.end(found)
        if found and not moved and self.is_away:  # the other hops are away, too
            self._around_backoff = self._around_backoff or self._new_backoff()
            self._around_at = now + self._around_backoff.next()
        else:
            self._around_backoff = None
        self._note_silence()
        return self._advance(now, [])

    def tick(self, now: float) -> HopActions[LinkT, ItemT]:
        """Do what the deadlines that have passed ask for."""
        if now >= self._dial_at:
            self._end_pause(forgive=not self.is_wanted)
        if now >= self._around_at:
            self._around_at = math.inf
        if now >= self._retry_at:
            self._retry_at = math.inf
            self._spooled.anew()
            self._waiting_since = now
        return self._advance(now, [])

    def _advance(self, now: float, actions: HopActions[LinkT, ItemT]) -> HopActions[LinkT, ItemT]:
        """Do whatever can be done now: send, dial, read back or go around."""
        if self.links:
            if self._queue:
                self._fill(self.links[-1], now, actions)
        elif self._rules.dials and self.dialling is DialState.IDLE and self.is_wanted:
            self.dialling = DialState.DIALLING
            actions.append(HopCommand.DIAL)
        if self.backlog is not BacklogState.SPOOLED:
            return actions
        if self.is_away:
            if self._around_at == math.inf:
                self._spooled.move()
                actions.append(HopCommand.GO_AROUND)
        elif self._is_within_reach() and (self._is_read_on() or not self._in_memory()):
            actions.append(self._spooled.read())
        return actions

    def _fill(self, link: LinkT, now: float, actions: HopActions[LinkT, ItemT]) -> None:
        """Send from the queue what the window takes and the spool still holds."""
        holds = self._rules.holds
        room = (self._rules.window or MAX_UNACKNOWLEDGED) - link.in_flight
        queue = self._queue or []
        sent: list[ItemT] = []
        size = passed = freed = 0
        for item in queue:
            if size >= room:
                break
            passed += 1
            freed += (each := item.size)
            if holds(item):
                sent.append(item)
                size += each
        del queue[:passed]
        self._queue = queue or ()
        self.queued -= freed
        if sent:
            link.send(sent, size, now)
            actions.append(SendItems(link, sent))
        else:
            self._note_silence()

    def _remove(self, link: LinkT) -> None:
        self.links = tuple([one for one in self.links if one is not link])
        if not link.is_fruitless():
            self._backoff = None
        elif self._backoff is None:
            self._backoff = self._new_backoff()
        if link.unacknowledged or (self._queue and not self._is_within_reach()):
            link.forget()
            self._leave_to_spool()

    def _note_away(self, away_after: float, now: float) -> HopActions[LinkT, ItemT]:
        """See whether the hop has been silent for so long that its items must go around it."""
        if self._until_away(away_after, now) > 0:
            return []
        self.is_away = True
        self._leave_to_spool()
        return [HopCommand.WENT_AWAY]

    def _until_away(self, away_after: float, now: float) -> float:
        if not self._rules.goes_around or self.is_away or self._waiting_since is None:
            return math.inf
        return self._waiting_since + away_after - now

    def _pause(self, backoff: Backoff, away_after: float, now: float) -> None:
        self.dialling = DialState.PAUSED
        self._dial_at = now + max(0.0, min(backoff.next(), self._until_away(away_after, now)))

    def _end_pause(self, forgive: bool) -> None:
        """Have it dialled now, if it is to be dialled at all; `forgive` what failed before."""
        self.dialling, self._dial_at = DialState.IDLE, math.inf
        if forgive:
            self._backoff = None

    def _stop_dialling(self) -> None:
        self._end_pause(forgive=not self.links)  # who wants a link next has it dialled at once

    def _new_backoff(self) -> Backoff:
        return Backoff(FIRST_BACKOFF, LONGEST_BACKOFF, self._rules.randomness)

    def _is_within_reach(self) -> bool:
        return bool(self.links) or self._rules.dials

    def _leave_to_spool(self) -> None:
        """Forget the queue: all of it is in the spool, from where it is read back in order."""
        self._queue = ()
        self.queued = 0
        self._spooled.anew()

    def _is_read_on(self) -> bool:
        return bool(self.links) and self.queued < READ_AHEAD and not self._spooled.is_anew

    def _in_memory(self) -> bool:
        """Tell whether items are queued, or sent and not acknowledged."""
        return bool(self._queue or [link for link in self.links if link.unacknowledged])

    def _note_silence(self) -> None:
        """Stop counting how long the hop is silent where nothing waits for it."""
        if not self.backlog and not self._in_memory():
            self._waiting_since = None
