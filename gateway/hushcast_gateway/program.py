"""The MQTT gateway as a program."""

from hushcast_runtime.processes.program import DottedPath, Program, ProgramRole

GATEWAY = Program(
    name="gateway",
    module=("hushcast_gateway",),
    roles=(
        ProgramRole(
            "gateway",
            "A gateway: any MQTT client can use it.",
            state_help="Sessions, retained messages and what waits for clients. Private; one gateway alone "
            "uses it.",
            sections="""
# Where clients connect: this machine alone. Other machines need TLS: docs/mqtt.md.
[[listen]]
kind = "tcp"
address = "127.0.0.1"
port = 1883

[[listen]]
kind = "unix"
path = {socket}

# Who may what. Others, with a password: `hushcast gateway passwd NAME --config` and this file.
[users.local]
# At the Unix socket this user of the machine (`id -u` tells the number) needs no password.
uid = [{uid}]
publish = ["#"]
subscribe = ["#", "$SYS/#"]
""",
        ),
    ),
    settings=DottedPath("hushcast_gateway.settings.GatewaySettings"),
    run=DottedPath("hushcast_gateway.process.run_gateway"),
    examine=DottedPath("hushcast_gateway.doctor.examine"),
    summary=DottedPath("hushcast_gateway.summary.summary"),
    socket="mqtt.sock",
    group_help="Members of this group may use the Unix socket.",
)
PROGRAMS = (GATEWAY,)
