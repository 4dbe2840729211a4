"""How the daemons of a testnet are: asked again and again, each at its own pace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import trio

from hushcast_runtime.wording import counted, listed
from hushcast_testnet.inventory import Member, describe

SLOW_AFTER = 3.0  # seconds without an answer until that is said: a busy machine may take one or two
EVERY = 1.0  # seconds from an answer to the next question


class DaemonStates:
    """What each daemon said last, and how long ago it was asked without an answer since."""

    def __init__(self) -> None:
        self._said: dict[str, dict[str, Any]] = {}
        self._waiting: dict[str, float] = {}  # since when, by the scheduler's clock

    async def ask(self, member: Member) -> None:
        """Ask one daemon again and again, until cancelled."""
        while True:
            self._waiting[member.name] = trio.current_time()
            self._said[member.name] = await describe(member)
            del self._waiting[member.name]
            await trio.sleep(EVERY)

    def __contains__(self, name: str) -> bool:
        """Tell whether a daemon is being asked, or has been."""
        return name in self._waiting or name in self._said

    @property
    def said(self) -> dict[str, dict[str, Any]]:
        """What each daemon said last; nothing of itself if it could not be reached."""
        return self._said

    def state(self, name: str, pid: int | None) -> tuple[str, str]:
        """Return a daemon's state as a kind and in words; see `state_of`."""
        silent = trio.current_time() - self._waiting.get(name, trio.current_time())
        return state_of(pid, self._said.get(name), silent)


def state_of(pid: int | None, said: dict[str, Any] | None, silent: float) -> tuple[str, str]:
    """Return (kind, words) for a daemon that has not answered for `silent` seconds, having `said` this last.

    The kind is `gone`, `slow`, `starting` or `ready`; of a relay the words have its shard, if there are any.
    """
    if pid is None:
        return "gone", "not running"
    if silent >= SLOW_AFTER:
        return "slow", f"no answer for {counted(int(silent), 'second')}"
    if said is not None and said.get("ready"):
        shard = (said.get("roster") or {}).get("shard")
        return "ready", "ready" if shard is None else f"ready, shard {shard}"
    return "starting", "starting"


def overall(kinds: list[str], away: Sequence[str]) -> tuple[str, str]:
    """Return (kind, words) for a testnet with nodes of these kinds; of what serves them these are `away`."""
    if away:
        return "gone", f"the {listed(away)} {'is' if len(away) == 1 else 'are'} not running"
    for kind, words in (("gone", "not running"), ("starting", "starting"), ("slow", "slow to answer")):
        if count := kinds.count(kind):
            return kind, f"{counted(count, 'daemon')} {words}"
    return ("ready", "ready") if kinds else ("starting", "no daemons yet")
