"""Greeting: asks proxies of a role for a sign of life, while none ever answered or all have fallen silent."""

from __future__ import annotations

import trio

from hushcast_central.user.reachability import Reachability
from hushcast_central.user.user_links import UserLinks
from hushcast_protocol.base.backoff import Backoff
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.central.frames import Pong
from hushcast_protocol.central.network import MAX_PROXIES, Proxy, ProxyRole
from hushcast_runtime.environment import Environment
from hushcast_runtime.logs import log
from hushcast_runtime.transports.base import TransportError

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds between rounds


async def keep_heard(links: UserLinks, heard: Reachability, role: ProxyRole, env: Environment) -> None:
    """Whenever a role is silent, ask its proxies until that is over; until cancelled."""
    backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, env.randomness)
    while True:
        await heard.silence(role)
        for proxy in env.sample(links.of(role), MAX_PROXIES):
            if await greet(links, proxy) is not None:
                break
        if heard.is_silent(role):
            await trio.sleep(backoff.next())
        else:
            backoff.reset()


async def greet(links: UserLinks, proxy: Proxy) -> Pong | None:
    """Return a proxy's sign of life, `None` where there is none."""
    try:
        return await links.ask(proxy)
    except (TransportError, PeerError) as error:
        log.info("a proxy does not answer", reason=str(error))
        return None
