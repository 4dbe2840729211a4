"""The programs of located feeds: a provider, and an owner."""

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
OWNER = Program(
    name="located-owner",
    module=("hushcast_located.owner_service",),
    roles=(
        ProgramRole(
            "located-owner",
            "An owner: it signs the batches of a located feed, and publishes them.",
            head="# A file that only the owner's user can read, with the link of the topic of batches:\n"
            "# `hushcast topic new --private --output FILE NAME` makes one. The provider needs it, too.\n"
            "feed = {feed}\n"
            "# Seconds of an interval, and from how many kilometres on a place counts nothing.\n"
            "interval = 300\nmax_distance = 100.0\n\n",
            state_help="The key, messages that wait, and batches. Private; one owner alone uses it.",
            sections="\n[daemon]\n"
            "# The daemon by which batches go out; the owner's user must be in its `socket_group`.\n"
            "socket = {daemon}\n"
            "\n[input]\n"
            "# Where messages come from, one at least: a pipe for lines, a folder of files, a topic's link.\n"
            "lines = {lines}\n"
            '# directory = "…"\n'
            '# topic = "…"\n',
        ),
    ),
    settings=DottedPath("hushcast_located.owner_service.settings.OwnerSettings"),
    run=DottedPath("hushcast_located.owner_service.process.run_owner"),
    examine=DottedPath("hushcast_located.owner_service.doctor.examine"),
    summary=DottedPath("hushcast_located.owner_service.summary.summary"),
    home="hushcast-located-owner",
    config="owner",
)
PROGRAMS = (PROVIDER, OWNER)
