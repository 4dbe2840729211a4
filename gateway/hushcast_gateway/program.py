"""The MQTT gateway as a program."""

from hushcast_runtime.processes.program import DottedPath, Program, ProgramRole

GATEWAY = Program(
    name="gateway",
    group="gateway",
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
    run_help="""Run the MQTT gateway in the foreground until SIGTERM or Ctrl-C.

    It speaks MQTT 3.1.1 and 5 over TCP, TLS, Unix sockets and WebSockets. A configuration that lets in
    strangers is refused, with exit code 2. Logs go to standard error and never show topics, payloads, users
    or client identifiers. SIGHUP makes it read users, certificates, purposes, grants and `log` again.""",
    doctor_help="""Look for what keeps the gateway from working.

    Says what to do about it. Looks at the state, ports, certificates, users, link files and the daemon's
    socket, whether the gateway runs or not. Run it as the gateway's user or as root. Ends with exit code 1 if
    anything is bad.""",
)
PROGRAMS = (GATEWAY,)
