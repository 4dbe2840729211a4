"""When a subscription is asked for, again, and anew: at moments of its own, which tell nobody anything."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from hushcast_located.subscriber.environment import DAYS, LONGEST_RETRY, SubscriberEnvironment
from hushcast_located.subscriber.subscription_files import FeedRecord
from hushcast_protocol.spatial.located_requests import DAY, SubscribeRequest
from hushcast_protocol.spatial.located_subscription import LocatedSubscription

SETTLING = 20.0  # seconds; what waits in the daemon comes before that


@dataclass
class RequestSchedule:
    """The requests for one subscription: which is next, and when."""

    world: SubscriberEnvironment
    kept: FeedRecord
    ask_at: float = 0.0
    """When the next one is to be sent."""
    is_lapsed: bool = False
    """Whether the last one ended before it was renewed: the next one begins anew."""
    _since: float | None = None  # when the first was sent that nobody has answered
    _say_at: float | None = None
    _wait: float = 0.0

    @staticmethod
    def begin(world: SubscriberEnvironment, kept: FeedRecord, is_chosen: bool = False) -> RequestSchedule:
        """Return them for a new life of the program; `is_chosen`: what is told was chosen this moment."""
        now = world.now()
        requests = RequestSchedule(world, kept)
        requests._wait = world.retry
        requests.is_lapsed = bool(kept.number) and kept.until < world.day
        if requests.is_lapsed:  # but first what waits in the daemon
            requests.ask_at = world.moment(now + SETTLING / 2, now + SETTLING)
        elif not kept.number or is_chosen:
            requests.ask_at = now if kept.blur is None else world.moment(now, now + world.spread)
        elif kept.taken == kept.number:
            # What starts with the machine is not to be renewed with all else that does.
            overdue = kept.renew_at <= now
            requests.ask_at = world.moment(now, now + world.spread) if overdue else kept.renew_at
        else:  # its receipt may wait in the daemon
            requests.ask_at = world.moment(now, now + world.retry)
            requests._since, requests._say_at = now, now + world.unanswered
        return requests

    @property
    def deadline(self) -> float:
        """When there is something to do."""
        return min(self.ask_at, self._say_at or self.ask_at)

    def next(self) -> SubscribeRequest:
        """Return the request to send now: note it before it is sent, so that no number is used twice."""
        world, now = self.world, self.world.now()
        kept, number, until = self.kept, self.kept.number + 1, world.day + DAYS
        told = kept.told
        assert told is not None
        if self.is_lapsed:
            kept = replace(kept, first=number, taken=0, followed=None)
            self.is_lapsed = False
        self.kept = replace(kept, number=number, until=until, first=kept.first or number)
        self.ask_at = now + world.moment(self._wait / 2, self._wait)
        self._wait = min(2 * self._wait, LONGEST_RETRY)
        if self._since is None:
            self._since, self._say_at = now, now + world.unanswered
        return SubscribeRequest(kept.name, number, until, kept.answers, told)

    def taken(self, number: int) -> bool:
        """Note that a request was taken; return whether it is the last one."""
        if number != self.kept.number or self.kept.taken == number:
            return False
        now = self.world.now()
        left = self.kept.until * DAY - now
        self.ask_at = self.world.moment(now + left / 3, now + left * 2 / 3)
        self.kept = replace(self.kept, taken=number, renew_at=int(self.ask_at))
        self._since = self._say_at = None
        self._wait = self.world.retry
        return True

    def ask_anew(self, told: LocatedSubscription) -> None:
        """Tell the provider something else, at some moment of the next minutes."""
        now = self.world.now()
        self.kept = self.kept.telling(told)
        self.ask_at = self.world.moment(now, now + self.world.spread)

    def silence(self) -> float | None:
        """Return for how many seconds nobody has answered, if it is time to say so."""
        if self._say_at is None or self._since is None or self.world.now() < self._say_at:
            return None
        self._say_at = max(self.ask_at, self._say_at) + self.world.unanswered
        return self.world.now() - self._since
