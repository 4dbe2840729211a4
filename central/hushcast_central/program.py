"""The server and the proxies of a central network as programs."""

from hushcast_runtime.processes.program import SOMEBODY, SOMEWHERE, DottedPath, Program, ProgramRole

_PROXY_RESTORED = (
    "It is as it was then: users whose pseudonyms were made since introduce them again by themselves."
)

SERVER = Program(
    name="central-server",
    module=("hushcast_central", "server"),
    roles=(
        ProgramRole(
            "central-server",
            "The server of a central network: it keeps subscriptions, and matches messages.",
            founded="central",
            restore_note="It is as it was then: subscriptions made since are missing until users' daemons "
            "make them again by themselves; deliveries acknowledged since come again and are shown once; "
            "what was taken since and waited for somebody is lost.",
            admission="\n# What follows are the proxies that it serves, which `hushcast admin central admit "
            "proxy.toml` writes here.\n",
        ),
    ),
    settings=DottedPath("hushcast_central.settings.ServerSettings"),
    run=DottedPath("hushcast_central.server.process.run_server"),
    key_files=DottedPath("hushcast_central.keys.SERVER_KEYS"),
    summary=DottedPath("hushcast_central.summary.server_summary"),
    rotate="a central server's keys are its network: start another one, and have it joined",
)
PROXY = Program(
    name="central-proxy",
    module=("hushcast_central", "proxy"),
    roles=(
        ProgramRole(
            "publications-proxy",
            "A proxy: it takes what is published to the server of a central network.",
            word="publications",
            restore_note=_PROXY_RESTORED,
        ),
        ProgramRole(
            "deliveries-proxy",
            "A proxy: it brings subscribers what the server of a central network sends them.",
            word="deliveries",
            restore_note=_PROXY_RESTORED,
        ),
    ),
    settings=DottedPath("hushcast_central.settings.ProxySettings"),
    example=f'[network]\ncarrier = "central"\nname = "any"\nserver = "{SOMEWHERE}"\n'
    f'server_key = "{SOMEBODY}"\nsealing_key = "{SOMEBODY}"\n',
    needed=DottedPath("hushcast_central.network_file.without_proxies"),
    run=DottedPath("hushcast_central.proxy.process.run_proxy"),
    key_files=DottedPath("hushcast_central.keys.PROXY_KEYS"),
    summary=DottedPath("hushcast_central.summary.proxy_summary"),
    role_name="{role}-proxy",
    rotate="a proxy with other keys is another one: empty its state, and have it admitted",
    are_apart=True,
)
PROGRAMS = (SERVER, PROXY)
