"""The circle: what one device tells the others of a person, and what it does with what they tell.

Each epoch, at a drawn moment, it sends one beat into the circle's topic, whatever happened: what a person
does on a device shows neither in when its daemon speaks nor, but for what others lack, in how much.
"""

from __future__ import annotations

import trio

from hushcast_local.devices.circle_entries import CircleEntries, Follow
from hushcast_local.devices.circle_records import (
    OwnCircle,
    circle_change,
    entry_change,
    erase_circle,
    unsaid_change,
)
from hushcast_local.devices.hidden_topics import HiddenTopics
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import AuthenticationError, Refusal
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.devices.beats import Beat, by_turns, fitting, open_beat, seal_beat
from hushcast_protocol.devices.circle_secrets import (
    MAX_SEALED_TO,
    CircleKeys,
    CircleSecret,
    check_secret,
    draw_secret,
    is_stale,
    kept_from,
    rank_of,
    sealed_to,
    take_secret,
)
from hushcast_protocol.devices.shared_entries import (
    MAX_MARKS,
    DeviceValue,
    EntryValue,
    ReadValue,
    SharedEntry,
)
from hushcast_protocol.devices.shared_state import MAX_DEVICES
from hushcast_runtime.context import Context
from hushcast_runtime.few_at_once import FewAtOnce
from hushcast_runtime.logs import log

MAX_FORMER = 4  # secrets of before that are listened to: one for each device that was removed lately
MAX_UNSAID = 4_096  # marks of what was read that wait for the next beat; what is over waits in entries
FORMER_KEPT = 30 * 24  # epochs for which a device that is away is waited for in a topic of before
LATELY = 3  # epochs for which what another device told of itself counts as what it holds
_FRESH = 1  # days after its own in which a beat in a topic of before is answered


class DeviceCircle:
    """One device in its circle, while it runs; `follow` hears of entries that came, or that fell."""

    def __init__(
        self, own: OwnCircle, topics: HiddenTopics, calendar: Calendar, context: Context, follow: Follow
    ) -> None:
        self.own = own
        self.scope = trio.CancelScope()
        self.is_over = False
        """Whether this device was removed, or left."""
        self._topics = topics
        self._calendar = calendar
        self._env = context.env
        self._store = context.store
        self._spawn = context.spawn
        self._heard: dict[bytes, tuple[int, Beat]] = {}
        self._to_answer: dict[CircleSecret, None] = {}
        self._told = b""
        """The stamp of the entry that the last beat told last."""
        self._changed = calendar.epoch(context.env.now())
        """The epoch since which the secret is the present one, as far as was seen."""
        self._entries = CircleEntries(own, calendar, context, follow)
        self._hearing = FewAtOnce()
        self._listening: dict[CircleSecret, trio.CancelScope] = {}

    @property
    def today(self) -> int:
        """The network's day."""
        return self._calendar.day(self._env.now())

    async def run(self) -> None:
        """Live until this device is removed or the daemon ends."""
        own = self.own
        await self._topics.close_others([secret.topic() for secret in self._secrets()])
        with self.scope:
            for secret in self._secrets():
                self._listen(secret)
            # A version before left what a removed device wrote in its name; a daemon may have ended midway.
            await self._store.write(*await self._entries.take_over(own.removed()))
            while True:
                epoch = self._calendar.epoch(self._env.now()) + 1
                begin, end = map(self._calendar.epoch_start, (epoch, epoch + 1))
                await self._env.sleep_until(self._env.uniform(begin, end))
                await self.speak(epoch)

    async def speak(self, epoch: int) -> None:
        """Do what is done once an epoch."""
        own, has_been_told = self.own, epoch > self._changed + LATELY  # where others draw as well
        if is_stale(own.keys, own.state.removed()) or (own.leaves_out and has_been_told):
            await self.renew()
        await self.beat()
        await self._let_go()

    def note_read(self, message_id: bytes) -> None:
        """Note that a message was shown or acknowledged here; the others hear it with a beat."""
        mark = message_id[:16]
        self.own.unsaid.append(mark)
        self._store.write_soon(unsaid_change(mark))
        if len(self.own.unsaid) >= MAX_UNSAID:
            self._write_marks()

    def is_read(self, message_id: bytes) -> bool:
        """Tell whether another device has shown or acknowledged a message, as far as it has told."""
        return self.own.state.is_read(message_id[:16])

    async def write(self, value: EntryValue, about: bytes = b"") -> None:
        """Tell the others something, with the next beat; durable on return. Raises `Refusal`."""
        entry = self.own.state.write(self.own.seed, value, about)
        await self._store.write(entry_change(entry))

    async def admit(self, entry: SharedEntry) -> None:
        """Take in a device that was invited; durable on return. Raises `Refusal` where they are too many."""
        if len(self.own.state.devices()) >= MAX_DEVICES:
            raise Refusal(f"{MAX_DEVICES} devices were in this circle, removed ones included")
        await self._entries.merge([entry])
        if entry.device not in self.own.living():
            raise Refusal("a device that was removed does not come back: it needs new keys")
        self.own.invited[entry.device] = self.own.keys.mark
        self.own.state.write(self.own.seed, entry.read(), entry.device)
        await self._store.write(circle_change(self.own))

    def heard_at(self, device: bytes) -> float | None:
        """Return when (Unix seconds) the epoch began in which a device was heard last, if it was lately."""
        heard = self._heard.get(device)
        return None if heard is None else self._calendar.epoch_start(heard[0])

    async def remove(self, device: bytes) -> None:
        """Remove a device: the others go on under a new secret. Durable on return, and told.

        Nothing counts from then on that it has written, but what this one writes anew.
        """
        own, held = self.own, self.own.state.living()[device]
        changes = await self._entries.take_over({device})
        removal = own.state.write(own.seed, DeviceValue(held.title, held.agreement, True), device)
        await self._store.write(*changes, entry_change(removal), circle_change(own))
        await self.renew()
        await self._tell(self.own.former[-1][0], self._change_alone())

    async def renew(self, above: int = 0, among: frozenset[PublicKey] | None = None) -> None:
        """Draw a new secret, which no removed devices get, whoever removed them.

        It stands above a generation, and is for some devices alone where these are given.
        """
        own, known = self.own, self.own.state.removed()
        removed = own.removed()
        living = {key: value for key, value in own.state.living().items() if key not in removed}
        if among is not None:
            living = {key: value for key, value in living.items() if key == own.key or key in among}
        # What was made up gives way: who is in a secret's way may name as many as there is room for.
        without = frozenset([*sorted(known), *sorted(removed - known)][:MAX_SEALED_TO])
        before = own.keys._replace(generation=max(own.keys.generation, above))
        signed, keys = draw_secret(own.seed, before, living, without, self._env.randomness)
        own.invited = {
            key: keys.mark if among is None or key in among else told
            for key, told in own.invited.items()
            if key not in removed
        }
        await self._change_to(keys, signed)

    async def beat(self) -> None:
        """Say what is to be said once an epoch."""
        own, today = self.own, self.today
        self._write_marks()
        gone = own.state.lapse(today)
        await self._store.write(*(entry_change(entry, is_gone=True) for entry in gone))
        oldest = self._calendar.epoch(self._env.now()) - LATELY
        lacking: dict[bytes, SharedEntry] = {}
        for epoch, heard in list(self._heard.values()):
            if epoch >= oldest and heard.summary is not None:
                lacking |= {entry.stamp: entry for entry in own.state.lacking(heard.summary, heard.day)}
                await trio.lowlevel.checkpoint()
        entries = by_turns(lacking, self._told)
        self._told = entries[-1].stamp if entries else b""
        entries = fitting([*self._sponsorships(), *entries])
        change = () if own.change is None else (own.change,)
        await self._tell(own.keys.secret, Beat(own.key, today, own.state.summary(today), entries, change))
        for secret in reversed(list(self._to_answer)):  # who is near hears it where it listens last
            self._to_answer.pop(secret, None)
            await self._tell(secret, self._change_alone())

    async def end(self) -> None:
        """Forget the circle, and all that was shared in it; what was subscribed to here stays."""
        self.is_over = True
        secrets = self._secrets()
        self.scope.cancel()
        for scope in self._listening.values():
            scope.cancel()
        await erase_circle(self._store)
        for secret in secrets:
            await self._topics.close(secret.topic())

    def _secrets(self) -> list[CircleSecret]:
        return [self.own.keys.secret, *(secret for secret, _ in self.own.former)]

    def _change_alone(self) -> Beat:
        """Return what is said in a topic of before: the present secret, and who let in or removed whom."""
        own = self.own
        change = () if own.change is None else (own.change,)
        sponsorships = self._sponsorships()
        words = {word.stamp: word for word in (*own.state.words, *own.state) if word.is_removal()}
        removals = (word for word in words.values() if word.name in own.keys.without)
        let_in = (own.state.words.of_itself(word.name) for word in sponsorships)
        entries = fitting([*sponsorships, *filter(None, let_in), *removals])
        return Beat(own.key, self.today, None, entries, change)

    def _sponsorships(self) -> list[SharedEntry]:
        return self.own.state.words.sponsorships(self.own.living())

    async def _tell(self, secret: CircleSecret, beat: Beat) -> None:
        payload = seal_beat(secret, self.own.seed, beat, self._env.randomness)
        try:
            await self._topics.say(secret.topic(), payload)
        except Refusal:
            log.debug("a beat found nobody to take it")  # the next one has it all

    def _write_marks(self) -> None:
        marks, self.own.unsaid = self.own.unsaid, []
        for begin in range(0, len(marks), MAX_MARKS):
            step = marks[begin : begin + MAX_MARKS]
            entry = self.own.state.write(self.own.seed, ReadValue(self.today, tuple(step)))
            said = (unsaid_change(mark, is_said=True) for mark in step)
            self._store.write_soon(entry_change(entry), *said)

    def _listen(self, secret: CircleSecret, within: float = 0.0) -> None:
        """Listen to the topic of a secret, from a moment drawn within so many seconds.

        All devices that hear of a new secret hear it at once: they must not all subscribe at once.
        """

        async def listen() -> None:
            with self._listening[secret]:
                await trio.sleep(self._env.uniform(0.0, within))
                try:
                    await self._topics.listen(secret.topic(), lambda payload: self._hear(secret, payload))
                except Refusal:
                    log.warning("the topic of the devices was refused: they share nothing for now")

        self._listening[secret] = trio.CancelScope()
        self._spawn(listen)

    async def _hear(self, secret: CircleSecret, payload: bytes) -> None:
        beat = open_beat(secret, payload)
        async with self._hearing:  # nothing is taken under one secret while this device goes by another
            await self._hear_beat(secret, beat)

    async def _hear_beat(self, secret: CircleSecret, beat: Beat) -> None:
        own = self.own
        if beat.device == own.key:
            return
        is_present, removed = secret == own.keys.secret, own.removed()
        if beat.device in removed:
            raise AuthenticationError("a removed device speaks")
        if is_present:
            await self._entries.merge(beat.entries)  # a new device tells of itself
        if beat.device not in self.own.living():
            raise AuthenticationError("a device speaks that nobody has told of")
        if not is_present:
            await self._entries.merge(beat.entries, is_present=False)
        if is_present:
            self._heard[beat.device] = self._calendar.epoch(self._env.now()), beat
            if beat.device not in own.here:
                own.here.add(beat.device)
                await self._store.write(circle_change(own))
        elif own.change not in beat.secrets and self._is_away(beat, secret):
            self._to_answer[secret] = None  # who knows it is not answered, or two would answer each other
        for signed in beat.secrets:
            await self._take(signed, is_present)
        if removed & own.living().keys():  # who removed it was removed by one that had not heard of that
            log.warning("a device that was removed stands again")

    def _is_away(self, beat: Beat, former: CircleSecret) -> bool:
        """Tell whether a beat can be of one that has not come from a topic of before, and not be an old one.

        Who was removed has beats of others until that day, to say again: the answers would show who is there.
        """
        until = dict(self.own.former).get(former, 0.0)
        left_on = self._calendar.day(until - FORMER_KEPT * self._calendar.epoch_seconds)
        return beat.device not in self.own.here and beat.day >= max(left_on, self.today - _FRESH)

    async def _take(self, signed: Signed, is_present: bool) -> None:
        """Take a new secret, if it holds; `is_present` of one that was told under the secret of now.

        Above what somebody drew for a removed device, too, who had not heard, another one is drawn. One that
        tells of a removal is gone by whatever its rank: who was removed knows the present one.
        """
        own = self.own
        if own.change is not None and signed.body == own.change.body:
            return
        last, removed = None if is_present else own.change, own.removed_or_self()
        guests = () if last is None else own.standing(sealed_to(last))
        among = check_secret(signed, own.keys, removed, last, guests)
        if own.key in kept_from(signed):
            log.warning("this device was removed from its circle")
            self._spawn(self.end)
            return
        is_news, is_higher = not kept_from(signed) <= own.keys.without, rank_of(signed) > own.keys.rank
        if not is_news and not is_higher:
            return
        if among is None and own.key not in sealed_to(signed):
            raise AuthenticationError("a new secret is not for this device")
        await self._entries.stay_with(sealed_to(signed) if among is None else among, kept_from(signed))
        if among is not None or sealed_to(signed) & self.own.removed():
            if is_higher:
                await self.renew(rank_of(signed)[0], among)
            return
        keys = take_secret(signed, own.key, own.agreement)
        own.invited |= dict.fromkeys(own.invited.keys() & sealed_to(signed), keys.mark)
        await self._change_to(keys, signed)

    async def _change_to(self, keys: CircleKeys, signed: Signed) -> None:
        own = self.own
        until = self._env.now() + FORMER_KEPT * self._calendar.epoch_seconds
        own.former.append((own.keys.secret, until))
        self._to_answer[own.keys.secret] = None  # who has not heard, a removed device as well, hears it there
        own.keys, own.change = keys, signed
        self._changed = self._calendar.epoch(self._env.now())
        own.here = set()
        over = own.former[:-MAX_FORMER]
        own.former = own.former[-MAX_FORMER:]
        await self._store.write(circle_change(own))
        for secret, _ in over:
            await self._leave(secret)
        self._listen(keys.secret, self._calendar.epoch_seconds)

    async def _let_go(self) -> None:
        """Leave topics of before once all have come from there, or have been away for too long."""
        own = self.own
        are_all_here = own.here | {own.key} >= own.living().keys()
        over = [one for one in own.former if are_all_here or one[1] < self._env.now()]
        if over:
            own.former = [one for one in own.former if one not in over]
            await self._store.write(circle_change(own))
            for secret, _ in over:
                await self._leave(secret)

    async def _leave(self, secret: CircleSecret) -> None:
        if (scope := self._listening.pop(secret, None)) is not None:
            scope.cancel()
        self._to_answer.pop(secret, None)
        await self._topics.close(secret.topic())
