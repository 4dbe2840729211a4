"""The broker and the tomography service as programs."""

from hushcast_runtime.processes.program import SOMEBODY, SOMEWHERE, DottedPath, Program, ProgramRole

_EXAMPLE = f'[network]\ncarrier = "brokers"\nname = "any"\nroot = "{SOMEWHERE}"\n'
_EXAMPLE += f'root_key = "{SOMEBODY}"\n'
_RESTORED = (
    "It is as it was then: brokers and clients below show it what they want again by themselves; messages "
    "acknowledged since and not passed on are lost."
)

BROKER = Program(
    name="broker",
    module=("hushcast_brokers",),
    roles=(
        ProgramRole(
            "root-broker",
            "The root of a network of brokers: it signs their tree, and takes what is published.",
            init_name="broker-root",
            word="root",
            founded="brokers",
            restore_note="It is as it was then: it takes the newest tree that it signed from brokers below, "
            "and signs the next one, with the brokers that its configuration lists; publications taken since "
            "and not passed on are lost.",
            admission="\n# What follows are all other brokers of the tree, which `hushcast admin broker "
            "admit broker.toml` writes here.\n",
        ),
        ProgramRole(
            "edge-broker",
            "An edge broker: clients attach to it, and it shows others no more than it must.",
            init_name="broker",
            word="edge",
            restore_note=_RESTORED,
            ending="""
# Subscribers that are to stand behind each filter before others are shown it.
# [anonymity]
# k = 5

# Whom it serves: anybody, unless told otherwise.
# [edge]
# open = false
# clients = []
""",
        ),
        ProgramRole(
            "inner-broker",
            "An inner broker: it stands between brokers above and below it.",
            init_name="broker",
            word="inner",
            restore_note=_RESTORED,
        ),
    ),
    settings=DottedPath("hushcast_brokers.broker.settings.parse_broker"),
    example=_EXAMPLE,
    run=DottedPath("hushcast_brokers.broker.process.run_broker"),
    key_files=DottedPath("hushcast_brokers.keys.BROKER_KEYS"),
    summary=DottedPath("hushcast_brokers.broker.summary.broker_summary"),
    role_name="{role}-broker",
    rotate="a root's keys are its network; any other broker with other keys is another one: empty its "
    "state, and have it take the old one's place by `hushcast admin broker replace`",
    are_apart=True,
)
TOMOGRAPHY = Program(
    name="tomography",
    module=("hushcast_brokers.tomography",),
    roles=(
        ProgramRole(
            "tomography-service",
            "A tomography service: it tells how many a filter hides among.",
            init_name="tomography",
            word="tomography",
            restore_note="It is as it was then: brokers state all that they hold again by themselves.",
            more_keys="# For how many clients on one topic an edge broker may vouch.\ncap = 8\n",
        ),
    ),
    settings=DottedPath("hushcast_brokers.tomography.settings.TomographySettings"),
    example=_EXAMPLE,
    run=DottedPath("hushcast_brokers.tomography.process.run_tomography"),
    key_files=DottedPath("hushcast_brokers.keys.BROKER_KEYS"),
    summary=DottedPath("hushcast_brokers.broker.summary.tomography_summary"),
    rotate="a tomography service with other keys is another one: empty its state, and give out its new "
    "tomography.toml",
)
PROGRAMS = (BROKER, TOMOGRAPHY)
