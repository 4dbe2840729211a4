"""Greeting: asks proxies of each role for a sign of life, until one of each has ever answered."""

from __future__ import annotations

import trio

from hushcast_central.user.reachability import Reachability
from hushcast_central.user.user_links import UserLinks
from hushcast_protocol.base.backoff import Backoff
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.central.frames import Pong
from hushcast_protocol.central.network import MAX_PROXIES, Proxy
from hushcast_runtime.environment import Environment
from hushcast_runtime.logs import log
from hushcast_runtime.transports.base import TransportError

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds between rounds


async def greet_until_heard(links: UserLinks, heard: Reachability, env: Environment) -> None:
    """Return once a proxy of each role has answered, in this life or one before."""
    backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, env.randomness)
    while missing := heard.missing:
        for role in missing:
            for proxy in env.sample(links.of(role), MAX_PROXIES):
                if await greet(links, proxy) is not None:
                    break
        if heard.missing:
            await trio.sleep(backoff.next())


async def greet(links: UserLinks, proxy: Proxy) -> Pong | None:
    """Return a proxy's sign of life, `None` where there is none."""
    try:
        async with links.open(proxy) as talk:
            return await talk.ping()
    except (TransportError, PeerError) as error:
        log.info("a proxy does not answer", reason=str(error))
        return None
