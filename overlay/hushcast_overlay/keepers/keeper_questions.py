"""Keeper questions: what is asked of keepers of one trunk and day, anonymously, and what is taken of answers.

Each is over a circuit of its own, so no keeper learns who asks, nor whether it is a host or an owner. Whoever
does not show what it said that it keeps is not asked for more. A trunk's keepers are few, and each may lie:
what is asked of one, and taken in all, is bounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from itertools import islice

import trio

from hushcast_overlay.connector import Connector
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.errors import DecodeError, PeerError
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.box_shares import MAX_BOX
from hushcast_protocol.overlay.frame_directions import decode_keeper_answer
from hushcast_protocol.overlay.keeper_frames import (
    MAX_SHOWN,
    AskKept,
    AskKeptMessages,
    KeeperAnswer,
    KeeperRequest,
    ShownKept,
    ShownKeptMessages,
    check_shown,
)
from hushcast_protocol.overlay.kept_answers import KeptIds
from hushcast_runtime.context import Context
from hushcast_runtime.few_at_once import FewAtOnce
from hushcast_runtime.transports.base import TransportError

MAX_ASKED_AT_ONCE = 16  # questions of one daemon under way: each is a circuit
SHOWN_WITHIN = 60.0  # seconds from an open link to the answer: what a keeper takes to write one to a slow tor
MAX_QUESTIONS = 64  # for bodies, to one keeper in one round: 4,096 of the smallest, more than a box holds
MAX_BROUGHT = MAX_BOX  # bytes of bodies of one round: more than a box has room for would be for nothing

AnswerKept = Callable[[KeeperRequest], Awaitable[KeeperAnswer]]
"""Answers as a keeper."""
Places = Mapping[RelayId, Address]
"""The keepers of a trunk, and where they are."""
TakeBrought = Callable[[Message, Collection[RelayId]], Awaitable[None]]
"""Takes a message that keepers show, and which of those that answered do not show it."""


class KeeperQuestions:
    """What one host asks, or one owner of boxes."""

    def __init__(
        self,
        connector: Connector,
        context: Context,
        relay: RelayId | None = None,
        answer: AnswerKept | None = None,
    ) -> None:
        """`relay` is a host's own name, and `answer` what it keeps itself: for that it opens no link."""
        self._relay = relay
        self._own_answer = answer
        self._connector = connector
        self._env = context.env
        self._counters = context.counters
        self._turns = FewAtOnce(MAX_ASKED_AT_ONCE)

    async def ids(self, places: Places, question: AskKept) -> dict[RelayId, KeptIds]:
        """Ask keepers for ids; return what those say that answer."""
        shown: dict[RelayId, KeptIds] = {}

        async def ask(keeper: RelayId) -> None:
            answer = await self._ask(keeper, places[keeper], question)
            if isinstance(answer, ShownKept):
                shown[keeper] = KeptIds(frozenset(answer.ids), frozenset(answer.away))

        async with trio.open_nursery() as nursery:
            for keeper in places:
                nursery.start_soon(ask, keeper)
        return shown

    async def bring(
        self,
        day: int,
        trunk: bytes,
        places: Places,
        shown: dict[RelayId, KeptIds],
        lacking: Collection[bytes],
        take: TakeBrought,
    ) -> bool:
        """Fetch messages that keepers said they keep; return whether nothing is left but what nobody shows.

        What most of them keep comes first: a liar's inventions come last.
        """
        votes: Counter[bytes] = Counter()
        for kept in shown.values():
            votes.update(kept.ids.intersection(lacking))
            await trio.lowlevel.checkpoint()  # one answer may have ten thousand
        wanted = dict.fromkeys(one for one, _ in votes.most_common())
        left = dict.fromkeys(self._env.sample(sorted(shown), len(shown)), MAX_QUESTIONS)
        taken = 0
        while wanted:
            holders = [keeper for keeper in left if not shown[keeper].ids.isdisjoint(wanted)]
            if not holders:
                return True
            keeper = next((one for one in holders if next(iter(wanted)) in shown[one].ids), holders[0])
            if taken >= MAX_BROUGHT or not left[keeper]:
                return False
            left[keeper] -= 1
            ids = tuple(islice((one for one in wanted if one in shown[keeper].ids), MAX_SHOWN))
            answer = await self._ask(keeper, places[keeper], AskKeptMessages(day, trunk, ids))
            if not isinstance(answer, ShownKeptMessages) or not answer.messages:
                del left[keeper]
                continue
            for message in answer.messages:
                del wanted[message.id]
                taken += len(message.body)
                await take(message, [one for one in shown if message.id not in shown[one].ids])
        return True

    async def _ask(self, keeper: RelayId, place: Address, question: KeeperRequest) -> KeeperAnswer | None:
        """Return a keeper's answer, `None` where there is none that could be an honest one's."""
        try:
            async with self._turns:
                answer = await self._answer(keeper, place, question)
            if isinstance(answer, ShownKeptMessages) != isinstance(question, AskKeptMessages):
                raise DecodeError("a keeper answers another question")
            if isinstance(question, AskKeptMessages) and isinstance(answer, ShownKeptMessages):
                check_shown(question, answer)
        except (TransportError, PeerError):
            self._counters.add("keepers_silent")
            return None
        return answer

    async def _answer(self, keeper: RelayId, place: Address, question: KeeperRequest) -> KeeperAnswer:
        if keeper == self._relay and self._own_answer is not None:
            return await self._own_answer(question)
        self._counters.add("keepers_asked")
        ask = self._connector.ask
        return await ask(keeper, place, question, decode_keeper_answer, SHOWN_WITHIN, False)
