"""The provider of a located feed as a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hushcast_runtime.program import Program, ProgramRole

if TYPE_CHECKING:
    from hushcast_located.service.settings import ProviderSettings
    from hushcast_protocol.base.findings import Finding


def _parse(data: bytes, where: str) -> ProviderSettings:
    from hushcast_located.service.settings import ProviderSettings
    from hushcast_runtime.processes.config import parse_settings

    return parse_settings(data, where, ProviderSettings)


def _complete(text: str) -> str:
    return f'owner = "{"0" * 64}"\nfeed = "/feed.link"\n{text}'


def _run(load: Callable[[], ProviderSettings]) -> None:
    from hushcast_located.service.process import run_provider

    run_provider(load)


async def _examine(settings: ProviderSettings) -> list[Finding]:
    from hushcast_located.service.doctor import examine

    return await examine(settings)


def _summary(settings: ProviderSettings) -> dict[str, list[str]]:
    from hushcast_located.service.summary import summary

    return summary(settings)


PROVIDER = Program(
    name="located-provider",
    group="located",
    verb="provide",
    module=("hushcast_located.service",),
    roles=(
        ProgramRole(
            "located-provider",
            "A provider: it answers those who subscribe to a located feed.",
            above="# Two things come from the feed's owner. Take the `#` away from both.\n"
            "# The public key that `hushcast located key new` printed:\n"
            '# owner = "…"\n'
            "# A file that only the provider's user can read, with the link of the feed's topic:\n"
            "# feed = {feed}\n\n",
            kept="The key, subscriptions, and what waits. Private; one provider alone uses it.",
            below="# Subscriptions that it answers at most, and bits of work that each costs.\n"
            "most = 1000\ndifficulty = 16\n",
            sections="\n[daemon]\n"
            "# The daemon by which everything travels; the provider's user must be in its `socket_group`.\n"
            "socket = {daemon}\n",
        ),
    ),
    parse=_parse,
    complete=_complete,
    run=_run,
    examine=_examine,
    summary=_summary,
    home="hushcast-located",
    config="provider",
    run_help="""Run a provider of a located feed in the foreground until SIGTERM or Ctrl-C.

    It takes batches from the feed's owner and subscriptions from whoever has its offer, and publishes an
    answer to each subscription for each batch. All goes through the daemon at `daemon.socket`: it opens no
    other connection, and does not learn who subscribes. Logs go to standard error and never show places,
    words or links.""",
    doctor_help="""Look for what keeps a provider from working.

    Says what to do about it. Looks at the state, the links, the daemon, and, if the provider runs, at batches
    that wait or never came, and how full it is. Run it as the provider's user or as root. Ends with exit
    code 1 if anything is bad.""",
)
PROGRAMS = (PROVIDER,)
