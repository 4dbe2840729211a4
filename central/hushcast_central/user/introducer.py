"""The introducer: makes a pseudonym known to proxy and server, and pays where the proxy wants work for it."""

from __future__ import annotations

import msgspec
import trio

from hushcast_central.user.pseudonym import Credentials
from hushcast_central.user.user_links import ProxyConversation
from hushcast_protocol.base.crypto.group import Scalar
from hushcast_protocol.base.crypto.proof_of_work import mint
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.wire import Wire
from hushcast_protocol.central.frames import AttachAnswer, Introduce, UserAnswer
from hushcast_protocol.central.introduction import handed_in, introduction
from hushcast_protocol.central.network import CentralNetwork
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment


class Introducer:
    """Introduces the pseudonyms of one daemon."""

    def __init__(self, network: CentralNetwork, env: Environment, counters: Counters) -> None:
        self._network = network
        self._env = env
        self._counters = counters
        # One after the other: they would only take the interpreter from each other.
        self._minting = trio.Lock()

    async def introduce(
        self, talk: ProxyConversation, known: Credentials, then: Wire
    ) -> UserAnswer | AttachAnswer:
        """Introduce a pseudonym and make a request with it, in one write; return the answer to that.

        Raises `Refusal` where the pseudonym is not taken, `TransportError` and `PeerError`.
        """
        blinding = Scalar.draw(self._env.randomness)
        sealed = introduction(
            self._network.sealing_key, known.use, known.day, known.key, blinding, known.secret
        )
        frame = Introduce(blinding.reveal(), sealed, None)
        introduced, answer = await talk.ask(frame, then)
        if isinstance(introduced, UserAnswer) and introduced.verdict == "stamp":
            frame = await self._stamped(talk, frame)
            introduced, answer = await talk.ask(frame, then)
        if not isinstance(introduced, UserAnswer) or introduced.verdict != "accepted":
            verdict = introduced.verdict if isinstance(introduced, UserAnswer) else "form"
            raise Refusal(f"a pseudonym was not taken: {verdict}")
        self._counters.add("pseudonyms_introduced")
        return answer

    async def _stamped(self, talk: ProxyConversation, frame: Introduce) -> Introduce:
        difficulty = (await talk.ping()).difficulty
        epoch = self._network.calendar.epoch(self._env.now())
        async with self._minting:
            stamp = await self._env.compute(
                mint, talk.proxy.key, epoch, handed_in(frame.sealed), difficulty, self._env.randomness
            )
        return msgspec.structs.replace(frame, stamp=stamp)
