"""The node as a program: a relay or a client."""

from hushcast_runtime.processes.program import SOMEBODY, SOMEWHERE, DottedPath, Program, ProgramRole

NODE = Program(
    name="node",
    module=("hushcast_node",),
    roles=(
        ProgramRole(
            "relay",
            "A relay: it passes on what others publish, and the network lists it.",
            word="relay",
            restore_note="It is as it was then: leases given since are missing until subscribers repeat "
            "them, within an epoch; those withdrawn since are back until their day ends.",
        ),
        ProgramRole(
            "client",
            "A client: it publishes and subscribes for the programs of this machine, and is in no list.",
            word="client",
            restore_note="It is as it was then: messages received since are not in it, those acknowledged "
            "since come again, cursors told since are given to other messages, subscriptions made since are "
            "gone, those ended since are back.",
        ),
    ),
    settings=DottedPath("hushcast_node.settings.NodeSettings"),
    example=f'[network]\nname = "any"\ndirectory = "{SOMEWHERE}"\ndirectory_key = "{SOMEBODY}"\n',
    run=DottedPath("hushcast_node.process.run_node"),
    examine=DottedPath("hushcast_node.outside_doctor.examine"),
    key_files=DottedPath("hushcast_node.relay_keys.key_files"),
    migrations=DottedPath("hushcast_node.upgrade.MIGRATIONS"),
    role_name="{role}",
    rotate=DottedPath("hushcast_node.relay_keys.rotate_relay"),
    key_names=("identity", "service", "parcel", "filter"),
    home="hushcast",
    unit="hushcast-node",
    socket="control.sock",
    socket_help="Where `hushcast` finds the daemon.",
    group_help="Members of this group may use it, and read all that it reads.",
    has_instances=True,
)
PROGRAMS = (NODE,)
