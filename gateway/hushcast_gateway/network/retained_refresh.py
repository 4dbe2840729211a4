"""Retained messages that were published here travel again, for gateways that came later.

What another gateway published since is that one's to refresh.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from hushcast_gateway.broker_state import BrokerState
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage
from hushcast_runtime.environment import Environment
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore
from hushcast_runtime.storage.store import Store

MAX_REFRESHED = 10_000  # topics, as many as are retained unless set; a house of 75 devices had 610

_KIND = RecordKind(
    "gateway-refreshed",
    StateOwner.GATEWAY,
    holds="topics whose retained messages are its own, to be published again where that is set",
    lifetime="until another gateway publishes there, or nothing is retained",
    bound=f"{MAX_REFRESHED:,}",
)


class RetainedRefresh:
    """The topics whose retained messages are this gateway's to publish again."""

    def __init__(self, hours: int, send: Callable[[MqttMessage], None], env: Environment) -> None:
        """Every `hours`, each topic at a moment of its own; 0: never."""
        self._hours = hours
        self._send = send
        self._env = env
        self._topics: set[str] = set()
        self._store: Store | None = None

    def note(self, topic: str, is_ours: bool) -> None:
        """Note who published the message that is retained for a topic, or that nothing is.

        Where nothing is published again, too: who sets it later has it of what is retained already.
        """
        if is_ours == (topic in self._topics):
            return
        if not is_ours:
            self._topics.discard(topic)
        elif len(self._topics) < MAX_REFRESHED:
            self._topics.add(topic)
        else:
            return
        if self._store is not None:
            self._store.write_soon(Change(_KIND, topic.encode(), b"\0" if is_ours else None))

    async def run(
        self,
        state: BrokerState,
        store: Store,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Publish again until cancelled; started when it knows what an earlier run noted."""
        self._store = store
        await restore(store, _KIND, lambda key, _: self._topics.add(key.decode()))
        task_status.started()
        while self._hours:
            period = self._hours * 3_600.0
            begins = self._env.now()
            for topic, moment in sorted(
                ((topic, begins + self._env.uniform(0.0, period)) for topic in self._topics),
                key=lambda pair: pair[1],
            ):
                await self._env.sleep_until(moment)
                message = state.broker.retained_at(topic) if topic in self._topics else None
                if message is not None and not message.is_expired(self._env.now()):
                    self._send(message)
            await self._env.sleep_until(begins + period)
        await trio.sleep_forever()
