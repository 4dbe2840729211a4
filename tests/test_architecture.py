"""The house of docs/architecture.md, held by reading every file: arrows, sizes, words of each room."""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ARROWS: dict[str, set[str]] = {
    # What each room may import beside itself.
    "base": set(),
    "content": {"base"},
    "overlay family": {"base", "content", "shards family", "cover family"},
    "central family": {"base", "content"},
    "brokers family": {"base", "content"},
    "mqtt family": {"base"},
    "spatial family": {"base"},
    "purposes family": {"base", "mqtt family"},
    "http family": {"base", "mqtt family"},
    "devices family": {"base", "content"},
    "cover family": {"base"},
    "shards family": {"base"},
    "authorities family": {"base", "shards family"},
    "runtime": {"base", "content"},
    "directory": {"base", "shards family", "authorities family", "overlay family", "runtime"},
    "client": {"base", "content", "mqtt family", "purposes family", "devices family"},
    "local": {"base", "content", "devices family", "runtime", "client"},
    "overlay": {"base", "content", "shards family", "authorities family", "overlay family"},
    "central": {"base", "content", "central family", "runtime"},
    "brokers": {"base", "content", "brokers family", "runtime"},
    "node": {"base", "content", "runtime", "directory", "client", "local", "overlay", "central", "brokers"},
}
ARROWS["overlay"] |= {"runtime", "directory", "cover family"}
ARROWS["node"] |= {"authorities family", "overlay family", "central family", "brokers family"}
ARROWS["node"] |= {"shards family", "cover family"}
ARROWS["gateway"] = {"base", "content", "mqtt family", "purposes family", "http family", "runtime", "client"}
ARROWS["located"] = {"base", "content", "spatial family", "runtime", "client"}
ARROWS["testnet"] = {*ARROWS["node"], "node", "mqtt family", "cover family"}
ARROWS["cli"] = {*ARROWS["testnet"], *ARROWS["gateway"], *ARROWS["located"], "testnet", "gateway", "located"}
ARROWS["cli"] |= {"analytics", "devices family"}  # lazily: a test of the CLI holds that
FOLDERS: dict[str, dict[str, set[str]]] = {
    # What each folder of a room may import beside itself; "" is what lies beside the folders. Each is what
    # somebody else runs: a proxy that could look into a user's parts would know what it is not to know.
    "overlay": {
        "": set(),
        "shards": {""},
        "keepers": {"", "shards"},
        "relay": {"", "shards", "keepers"},
        "routes": {"", "shards", "keepers"},
    },
    "central": {"": set(), "user": {""}, "server": {""}, "proxy": {""}},
    "brokers": {
        "": set(),
        "tomography": {""},
        "community": {"", "tomography"},
        "client": {"", "community"},
        "broker": {"", "community", "tomography"},
    },
    "directory": {"": set(), "server": {""}, "client": {""}},
    "runtime": {
        "": {"storage"},  # a context has a store
        "transports": {""},
        "tor": {"", "transports"},
        "storage": {""},
        "carriers": set(),
        "processes": {"", "transports", "tor", "storage"},
    },
    "gateway": {
        "": {"announcement", "clients", "http", "network", "operators", "purposes", "sections"},
        "sections": {""},
        "announcement": {"sections"},
        "http": {"", "sections"},
        "clients": {"", "http", "sections"},  # either side knows the broker, and not the other side
        "network": {"", "purposes"},
        "purposes": {"", "sections"},
        "operators": {"", "clients"},
    },
    "located": {
        "": {"subscriber"},
        "subscriber": {""},
        "owner_service": {""},
        "service": {""},
        "figures": {""},
        "map": {""},
    },
    "cli": {
        "": set(),
        "configuration": {""},
        "purposes": {"", "configuration"},
        "messages": {"", "purposes"},
        "devices": {""},
        "analysis": {""},
        "testnets": {""},
        "operate": {"", "configuration", "messages", "purposes", "testnets"},
        "gateways": {"", "configuration", "operate", "purposes"},
        "located": {"", "analysis", "configuration", "messages", "operate"},
    },
}
WIRES = {
    # What makes a program of its parts may import all of them.
    "hushcast_overlay.carrier",
    "hushcast_brokers.__main__",
    "hushcast_directory.__main__",
    "hushcast_cli.lab",
}
MAX_FILES = 30  # of a folder
CARRIERS = ["overlay", "central", "brokers"]
DAEMON = ["protocol", "runtime", "directory", "client", "local", *CARRIERS, "node", "gateway", "located"]
ANALYTICS = "spark_analytics"  # stands beside the daemon: it reads traces
ALONE = {
    "base.crypto.hashes",
    "base.intervals",
    "base.shard_count",
    "base.observations",
    "base.ground_truth",
    "base.trace",
    "overlay.tree",
    "overlay.profile",
    "shards.assignment",
}  # without the daemon's dependencies
# Subscriptions are read, and wider filters searched, by the code that brokers and `filters levels` run: two
# that read the same lines would not stay alike.
BY_BROKERS = {
    *("brokers.frames", "brokers.clear_words"),  # filters as they are in traces
    *(
        "base.errors",
        "brokers.anonymity_conditions",
        "brokers.filters",
        "brokers.generalisation",
        "brokers.anonymity_levels",
    ),
    *(
        "brokers.subscription_lines",
        "content.attributes",
        "content.predicates",
        "content.tokens",
        "content.topics",
    ),
}
# Attacks on layers go through the scheme of brokers themselves: what breaks a model of it might not break it.
OF_LAYERS = {
    *("base.errors", "base.crypto.secrets", "base.wire", "brokers.items", "brokers.privacy", "brokers.full"),
}
# Owners of boxes that are generated use their hosts by what daemons decide it by.
OF_BOXES = {"overlay.host_list"}
FAMILIES = (
    *("overlay", "central", "brokers", "mqtt", "purposes", "http", "spatial", "authorities", "shards"),
    *("devices", "cover"),
)
MAX_LINES = 400
MAX_FUNCTION = 60  # lines
MAX_PARAMETERS = 7  # of a constructor

FILES = [
    path
    for package in [*DAEMON, "testnet", "cli", ANALYTICS]
    for path in sorted((ROOT / package).rglob("*.py"))
]


def room_of(module: str) -> str:
    """Return the room of a module of ours."""
    package, _, inside = module.partition(".")
    if package == "hushcast_protocol":
        family = inside.partition(".")[0]
        return f"{family} family" if family in FAMILIES else family
    return "client" if package == "hushcast" else package.removeprefix("hushcast_")


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).parts[1:]).removesuffix(".py")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class Read:
    """What the rules ask of a file."""

    doc: str | None
    imports: set[str]  # every module that is imported anywhere, lazily and for types included
    names: set[str]  # with dots, as `time.time`
    called: set[str]
    functions: list[ast.FunctionDef | ast.AsyncFunctionDef]
    groups: list[ast.TryStar]  # with `except*`

    @property
    def ours(self) -> set[str]:
        return {module for module in self.imports if module.split(".")[0].startswith("hushcast")}


@functools.cache
def read(path: Path) -> Read:
    tree = ast.parse(path.read_text(), name_of(path))
    read = Read(ast.get_docstring(tree), set(), set(), set(), [], [])
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            read.imports.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            read.imports.update([node.module, *(f"{node.module}.{alias.name}" for alias in node.names)])
        elif isinstance(node, ast.Attribute):
            read.names.add(dotted(node))
        elif isinstance(node, ast.Call):
            read.called.add(dotted(node.func))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = []  # its nodes are in line already, and nobody asks for the tree again
            read.functions.append(node)
        elif isinstance(node, ast.TryStar):
            read.groups.append(node)
    return read


def dotted(node: ast.expr) -> str:
    """Return a name with dots as it stands; what stands before it that is no name is left out."""
    if isinstance(node, ast.Name):
        return node.id
    return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def for_each(files: list[Path]) -> Callable[[Callable[[Path], None]], Callable[[], None]]:
    """Hold a rule for all these files in one test: it tells every file that breaks it."""

    def decorate(rule: Callable[[Path], None]) -> Callable[[], None]:
        def test() -> None:
            broken = {}
            for path in files:
                try:
                    rule(path)
                except AssertionError as error:
                    broken[name_of(path)] = str(error)
            assert not broken

        test.__name__ = rule.__name__
        return test

    return decorate


each_file = for_each(FILES)


def test_there_is_something_to_look_at() -> None:
    rooms = {room_of(module_of(path)) for path in FILES}
    assert rooms - {"__init__"} == {*ARROWS, "analytics"}


@each_file
def test_arrows_between_packages_point_one_way(path: Path) -> None:
    room = room_of(module_of(path))
    found = read(path).ours
    if room == "analytics":
        part = module_of(path).split(".")[1]
        more = {"filters": BY_BROKERS, "brokers": OF_LAYERS, "generator": OF_BOXES}.get(part, set())
        alone = tuple(f"hushcast_protocol.{name}" for name in ALONE | more)
        assert all(module.startswith(("hushcast_analytics", *alone)) for module in found)
        return
    assert {room_of(module) for module in found} <= {room, *ARROWS.get(room, ())}


def folder_of(module: str) -> str:
    """Return the folder that a module of a room with folders lies in; empty beside them."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in FOLDERS[room_of(module)] else ""


def strays(module: str, imports: set[str]) -> set[str]:
    """Return what a module may not import, of the folders of its own room."""
    room = room_of(module)
    if room not in FOLDERS or module in WIRES:
        return set()
    own = folder_of(module)
    allowed = {own, *FOLDERS[room][own]}
    # A package is imported where one of its modules is: it tells nothing by itself.
    inside = {one for one in imports if room_of(one) == room and "." in one}
    return {one for one in inside if folder_of(one) not in allowed}


@each_file
def test_folders_of_a_room_see_what_their_program_sees(path: Path) -> None:
    assert not strays(module_of(path), read(path).ours)


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("hushcast_central.proxy.users", "hushcast_central.user.carrier"),
        ("hushcast_central.server.daemon", "hushcast_central.proxy.users"),
        ("hushcast_overlay.relay.peers", "hushcast_overlay.routes.route"),
        ("hushcast_brokers.broker.daemon", "hushcast_brokers.client.attachment"),
        ("hushcast_directory.client.audit", "hushcast_directory.server.archive"),
        ("hushcast_gateway.clients.server", "hushcast_gateway.network.gateway_network"),
        ("hushcast_located.owner_service.feed_owner", "hushcast_located.service.provider"),
    ],
)
def test_a_wall_between_programs_holds(module: str, imported: str) -> None:
    """A file that is there, and one that it may not know: each would fail the test of folders."""
    for name in (module, imported):
        package = name.partition(".")[0]
        assert (ROOT / room_of(name) / package / f"{name.partition('.')[2].replace('.', '/')}.py").is_file()
    assert strays(module, {imported}) == {imported}


def test_no_folder_is_a_heap() -> None:
    folders: dict[Path, int] = {}
    for path in [*FILES, *(ROOT / "benchmarks").rglob("*.py"), *(ROOT / "soak").rglob("*.py")]:
        if path.name != "__init__.py":
            folders[path.parent] = folders.get(path.parent, 0) + 1
    assert not {name_of(folder) for folder, count in folders.items() if count > MAX_FILES}


@for_each([f for f in FILES if room_of(module_of(f)) == "purposes family"])
def test_purposes_know_topics_and_no_broker(path: Path) -> None:
    named = {m.split(".", 2)[2] for m in read(path).imports if m.startswith("hushcast_protocol.mqtt.")}
    allowed = ("topics.topic_filters", "topics.filter_tree", "limits")
    assert all(one.startswith(allowed) for one in named)


MATCHING = {
    f"hushcast_protocol.mqtt.topics.topic_filters.{one}"
    for one in ("common", "covers", "intersects", "matches")
}
BY_ALL_NAMES = {
    # Whatever else decides by a topic asks these: a message has several names (`mqtt/topics/topic_names.py`).
    "protocol/hushcast_protocol/mqtt/topics/access.py": "lists, by what is shown and by all names",
    "protocol/hushcast_protocol/mqtt/ingress.py": "what a client registered for its messages, by all names",
    "protocol/hushcast_protocol/mqtt/kept/message_history.py": "what is kept and looked at, in one spelling",
    "protocol/hushcast_protocol/mqtt/operator_actions.py": "what a purge takes of histories, by all names",
    "protocol/hushcast_protocol/mqtt/subscribers.py": "plans to be drawn anew, in one spelling",
    "protocol/hushcast_protocol/mqtt/topics/ways.py": "tells the names",
    "protocol/hushcast_protocol/purposes/reservations.py": "reservations, by the images of their filters",
    "gateway/hushcast_gateway/doctor.py": "who reads an alias, to warn",
    "gateway/hushcast_gateway/purposes/claims.py": "who may reserve, by the name that is used",
    "gateway/hushcast_gateway/purposes/explanation.py": "which subscriptions get a message, by what is shown",
    "gateway/hushcast_gateway/purposes/rules.py": "the topic of the broker's own that tells of pauses",
    "gateway/hushcast_gateway/purposes/suspension_notices.py": "the same",
    "gateway/hushcast_gateway/settings.py": "maps that have topics in common, in one spelling",
}


def test_nobody_else_decides_by_a_topic_s_one_name() -> None:
    found = {
        name_of(path) for path in FILES if read(path).imports & MATCHING and path.name != "topic_filters.py"
    }
    assert found == set(BY_ALL_NAMES)


def test_no_two_rooms_stand_in_a_circle() -> None:
    for room, below in ARROWS.items():
        assert all(room not in ARROWS.get(other, ()) for other in below)


@pytest.mark.parametrize("name", sorted(ALONE))
def test_what_analyses_import_needs_the_standard_library_alone(name: str) -> None:
    path = ROOT / "protocol" / "hushcast_protocol" / f"{name.replace('.', '/')}.py"
    for module in read(path).imports:
        ours = any(f"{module}.".startswith(f"hushcast_protocol.{other}.") for other in ALONE)
        assert ours or module.split(".")[0] in sys.stdlib_module_names | {"__future__"}


IO = {
    "trio",
    "socket",
    "ssl",
    "sqlite3",
    "subprocess",
    "threading",
    "asyncio",
    "time",
    "random",
    "secrets",
    "os",
}


@for_each([f for f in FILES if f.is_relative_to(ROOT / "protocol")])
def test_the_core_pretends_that_the_world_does_not_exist(path: Path) -> None:
    tops = {module.split(".")[0] for module in read(path).imports}
    assert not tops & IO
    assert "open" not in read(path).called


@each_file
def test_a_reader_knows_the_room(path: Path) -> None:
    doc = read(path).doc
    assert doc, "the first sentence names the idea of the file"
    assert doc.splitlines()[0].rstrip().endswith((".", "?"))


@each_file
def test_a_file_holds_one_idea(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MAX_LINES


@each_file
def test_a_function_is_read_at_one_look(path: Path) -> None:
    for function in read(path).functions:
        assert function.end_lineno is not None
        lines = function.end_lineno - function.lineno + 1
        assert lines <= MAX_FUNCTION, f"{function.name} has {lines} lines"


@each_file
def test_a_constructor_takes_few_things(path: Path) -> None:
    for function in read(path).functions:
        if function.name == "__init__":
            arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
            assert len(arguments) - 1 <= MAX_PARAMETERS, f"line {function.lineno}"


@each_file
def test_nothing_is_raised_where_groups_are_caught(path: Path) -> None:
    """Python before 3.11.4, as Debian's, makes a group of it, which nobody who waits for it catches."""
    for group in read(path).groups:
        inside = [node for handler in group.handlers for node in ast.walk(handler)]
        raised = [node.lineno for node in inside if isinstance(node, ast.Raise)]
        assert not raised, f"lines {raised}: use `ungrouped`, or raise after the `except*`"


@for_each([file for file in FILES if file.relative_to(ROOT).parts[0] != "cli"])
def test_only_the_command_line_prints(path: Path) -> None:
    assert not read(path).called & {"print", "pprint", "input", "sys.stdout.write"}


INJECTED = {
    # Where time and randomness enter; all else takes them as arguments.
    "runtime/hushcast_runtime/environment.py": {"random", "time.time", "os.urandom"},
    # A step is measured by the machine, whatever time the daemon is in.
    "runtime/hushcast_runtime/processes/steps.py": {"time.perf_counter"},
    # A simulation replays from its seed, and its scheduler, too; it tells how long it took.
    "testnet/hushcast_testnet/simulations/overlay_simulation.py": {"random", "time.perf_counter"},
    # The default of an argument, and a nonce for a tor on this machine: neither replays, nor could.
    "runtime/hushcast_runtime/tor/transport.py": {"os.urandom"},
    "runtime/hushcast_runtime/tor/authentication.py": {"os.urandom"},
    # A line says when it was written, in whatever time the program lives.
    "runtime/hushcast_runtime/logs.py": {"datetime.now"},
    # A command waits at a socket in real time, as the loop in whose place it does.
    "client/hushcast/plain_connection.py": {"time.monotonic"},
    # Defaults for programs, which replay nothing.
    "client/hushcast/keys.py": {"os.urandom"},
    "client/hushcast/purposes/keys.py": {"os.urandom", "time.time"},
    "located/hushcast_located/subscriber/environment.py": {"os.urandom", "time.time"},
}
SOURCES = {
    *("time.time", "time.time_ns", "time.monotonic", "time.perf_counter", "time.sleep"),
    *("os.urandom", "os.getrandom", "uuid.uuid4", "datetime.now", "datetime.datetime.now"),
}


def world(path: Path) -> set[str]:
    """The sources of time and chance that a file names."""
    modules = read(path).imports
    found = (read(path).names | modules) & SOURCES
    return found | {module.split(".")[0] for module in modules} & {"random", "secrets"}


@for_each(
    # Testnets and the command line are tools around real processes: they wait for real time.
    [f for f in FILES if f.relative_to(ROOT).parts[0] in DAEMON]
    + [ROOT / "testnet" / "hushcast_testnet" / "simulations/overlay_simulation.py"]
)
def test_time_and_chance_are_injected(path: Path) -> None:
    assert world(path) <= INJECTED.get(name_of(path), set())


def test_the_list_of_exceptions_is_not_longer_than_it_must_be() -> None:
    for name, allowed in INJECTED.items():
        assert world(ROOT / name) == allowed, name
