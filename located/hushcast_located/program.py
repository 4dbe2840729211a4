"""The provider of a located feed as a program."""

from hushcast_runtime.processes.program import SOMEBODY, DottedPath, Program, ProgramRole

PROVIDER = Program(
    name="located-provider",
    module=("hushcast_located.service",),
    roles=(
        ProgramRole(
            "located-provider",
            "A provider: it answers those who subscribe to a located feed.",
            head="# Two things come from the feed's owner. Take the `#` away from both.\n"
            "# The public key that `hushcast located key new` printed:\n"
            '# owner = "…"\n'
            "# A file that only the provider's user can read, with the link of the feed's topic:\n"
            "# feed = {feed}\n\n",
            state_help="The key, subscriptions, and what waits. Private; one provider alone uses it.",
            more_keys="# Subscriptions that it answers at most, and bits of work that each costs.\n"
            "most = 1000\ndifficulty = 16\n",
            sections="\n[daemon]\n"
            "# The daemon by which everything travels; the provider's user must be in its `socket_group`.\n"
            "socket = {daemon}\n",
        ),
    ),
    settings=DottedPath("hushcast_located.service.settings.ProviderSettings"),
    example=f'owner = "{SOMEBODY}"\nfeed = "/feed.link"\n',
    run=DottedPath("hushcast_located.service.process.run_provider"),
    examine=DottedPath("hushcast_located.service.doctor.examine"),
    summary=DottedPath("hushcast_located.service.summary.summary"),
    home="hushcast-located",
    config="provider",
)
PROGRAMS = (PROVIDER,)
