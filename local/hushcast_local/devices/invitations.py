"""Invitations on the network: one device waits for a new one, which says itself and is answered once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from hushcast_local.devices.circle_records import OwnCircle
from hushcast_local.devices.hidden_topics import HiddenTopics
from hushcast_protocol.base.crypto.secrets import AgreementKey, Seed
from hushcast_protocol.base.errors import PeerError, Refusal, UsageError
from hushcast_protocol.devices.circle_secrets import CircleKeys
from hushcast_protocol.devices.invitations import (
    INVITED_WITHIN,
    MAX_WELCOME,
    DeviceInvitation,
    Welcome,
    network_mark,
    open_joining,
    open_welcome,
    read_invitation,
    seal_joining,
    seal_welcome,
    write_invitation,
)
from hushcast_protocol.devices.shared_entries import DeviceValue, EntryKind, SharedEntry, write_entry
from hushcast_protocol.devices.shared_state import SharedState
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log

LINGER = 1.0, 3.0  # of `INVITED_WITHIN`: when each of the two leaves the topic they met in

_STEP = 32  # entries whose signatures are checked at once, some 5 ms

Admit = Callable[[SharedEntry], Awaitable[None]]
"""Takes in the entry of a new device, durably; raises `Refusal`."""


class Invitations:
    """The invitation that is open, if one is, and what is said to accept one."""

    def __init__(self, topics: HiddenTopics, network: bytes, context: Context) -> None:
        self._topics = topics
        self._network = network_mark(network)
        self._env = context.env
        self._spawn = context.spawn
        self._open = trio.CancelScope()

    async def invite(self, own: OwnCircle, admit: Admit) -> tuple[str, float]:
        """Return the link of a new invitation, once who follows it is heard, and until when it is good.

        The one before is not good any more. Raises `Refusal`.
        """
        self._open.cancel()
        expires = self._env.now() + INVITED_WITHIN
        invitation = DeviceInvitation(self._network, self._env.randomness(32), own.key, int(expires))
        await self._topics.open(invitation.topic(), INVITED_WITHIN)
        self._open = trio.CancelScope()
        self._spawn(self._wait, invitation, own, admit, self._open)
        return write_invitation(invitation), expires

    async def accept(self, link: str, title: str, today: int) -> OwnCircle:
        """Join the circle of who made the link, on the network's day; return what this device knows then.

        Raises `UsageError` for a link that is none, is of another network or too old, and `Refusal` where
        nobody answers to it.
        """
        invitation = read_invitation(link)
        if invitation.network != self._network:
            raise UsageError("the invitation is of another network than this daemon's")
        left = invitation.expires - self._env.now()
        if left <= 0:
            raise UsageError("the invitation is too old: `hushcast device invite` prints another one")
        seed, agreement = Seed.draw(self._env.randomness), AgreementKey.draw(self._env.randomness)
        entry = write_entry(seed, 1, DeviceValue(title, agreement.public()))
        found: list[Welcome] = []
        await self._topics.open(invitation.topic(), INVITED_WITHIN)
        self._spawn(self._leave, invitation)
        with trio.move_on_after(left):
            await self._topics.say(invitation.topic(), seal_joining(invitation, entry, self._env.randomness))
            await self._hear(invitation, agreement, found)
        if not found:
            raise Refusal("nobody answered: the invitation was used, or the other device is not there")
        return await _joined(seed, agreement, entry, found[0], today)

    async def _hear(
        self, invitation: DeviceInvitation, agreement: AgreementKey, found: list[Welcome]
    ) -> None:
        with trio.CancelScope() as scope:

            async def hear(payload: bytes) -> None:
                welcome = open_welcome(invitation, agreement, payload)
                found.append(welcome)
                scope.cancel()

            await self._topics.listen(invitation.topic(), hear)

    async def _wait(
        self, invitation: DeviceInvitation, own: OwnCircle, admit: Admit, scope: trio.CancelScope
    ) -> None:
        self._spawn(self._leave, invitation)

        async def hear(payload: bytes) -> None:
            if scope.cancel_called:
                return
            entry = open_joining(invitation, payload)
            scope.cancel()  # it is good once
            with trio.CancelScope(shield=True):
                try:
                    await admit(entry)
                    welcome = _welcome(own)
                    sealed = seal_welcome(invitation, own.seed, entry.read(), welcome, self._env.randomness)
                    await self._topics.say(invitation.topic(), sealed)
                except Refusal:
                    log.warning("a new device was not answered: invite it again")

        with scope, trio.move_on_after(INVITED_WITHIN):
            await self._topics.listen(invitation.topic(), hear)

    async def _leave(self, invitation: DeviceInvitation) -> None:
        await trio.sleep(INVITED_WITHIN * self._env.uniform(*LINGER))
        await self._topics.close(invitation.topic())


def _welcome(own: OwnCircle) -> Welcome:
    keys: CircleKeys = own.keys
    entries: list[SharedEntry] = []
    room = MAX_WELCOME
    sponsorships = own.state.words.sponsorships(own.living())
    for entry in (*sponsorships, *sorted(own.state, key=lambda entry: entry.kind is EntryKind.READ)):
        room -= len(entry.value) + 200
        if room < 0:
            break
        entries.append(entry)
    return Welcome(
        keys.secret.reveal(), keys.generation, keys.mark, tuple(sorted(keys.without)), tuple(entries)
    )


async def _joined(
    seed: Seed, agreement: AgreementKey, entry: SharedEntry, welcome: Welcome, today: int
) -> OwnCircle:
    own = OwnCircle(seed, agreement, welcome.keys(), state=SharedState())
    for number, one in enumerate((entry, *welcome.entries)):
        try:
            own.state.merge(one, today)
        except PeerError:
            log.debug("an entry was not its device's")
        if number % _STEP == _STEP - 1:
            await trio.lowlevel.checkpoint()
    return own
