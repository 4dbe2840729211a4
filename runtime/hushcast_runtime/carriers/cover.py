"""Covering: what a carrier offers a publisher whose messages go in rounds that say nothing of its use."""

from __future__ import annotations

from typing import Protocol

from hushcast_protocol.content.messages import Message


class CoveredPublication(Protocol):
    """A publication under cover, as its carrier sees it."""

    @property
    def id(self) -> bytes:
        """32 bytes, the same after a restart and however often it is sealed anew."""

    @property
    def topic(self) -> str:
        """What its topic is known by, the same after a restart; not to be shown."""

    @property
    def only_day(self) -> int | None:
        """The day for which alone it holds, as it is signed; `None`: it can be sealed for any."""

    @property
    def parts(self) -> int:
        """How many letters it takes."""

    async def sealed_for(self, day: int, number: int) -> Message:
        """Return the message, or the part with a number (from 0), as it is to be dropped on a day.

        Raises `Refusal` where it cannot be.
        """


class Covering(Protocol):
    """The publications of one daemon under cover."""

    def check_fits(self, message: Message) -> None:
        """Raise `Refusal` where a message is too large to go under cover, or too many wait."""

    def begin(self, covered: CoveredPublication, next_round: bool) -> None:
        """Let it go, in the next round or as the daemon holds messages; durable with the next commit.

        After a restart it goes on as it began. Raises `Refusal` where too many wait.
        """

    async def taken(self, covered: CoveredPublication) -> bool:
        """Return whether it arrived; when there is a receipt, or time is over in which there might be one."""

    def forget(self, publication: bytes) -> None:
        """Let the one with this id go no more; durable with the next commit."""

    def outlook(self, covered: CoveredPublication) -> str:
        """Say for people when it goes, and when its receipt may be there."""
