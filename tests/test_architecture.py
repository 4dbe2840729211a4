"""The house of docs/architecture.md, held by reading every file: arrows, sizes, words of each room."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ARROWS: dict[str, set[str]] = {
    # What each room may import beside itself.
    "base": set(),
    "content": {"base"},
    "overlay family": {"base", "content"},
    "central family": {"base", "content"},
    "brokers family": {"base", "content"},
    "mqtt family": {"base"},
    "runtime": {"base", "content"},
    "directory": {"base", "overlay family", "runtime"},
    "client": {"base", "content"},
    "local": {"base", "content", "runtime", "client"},
    "overlay": {"base", "content", "overlay family", "runtime", "directory"},
    "central": {"base", "content", "central family", "runtime"},
    "brokers": {"base", "content", "brokers family", "runtime"},
    "node": {"base", "content", "runtime", "directory", "client", "local", "overlay", "central", "brokers"},
}
ARROWS["node"] |= {"overlay family", "central family", "brokers family"}
ARROWS["gateway"] = {"base", "content", "mqtt family", "runtime", "client"}
ARROWS["testnet"] = {*ARROWS["node"], "node", "mqtt family"}
ARROWS["cli"] = {*ARROWS["testnet"], *ARROWS["gateway"], "testnet", "gateway"}
ARROWS["cli"].add("analytics")  # lazily: a test of the CLI holds that
CARRIERS = ["overlay", "central", "brokers"]
DAEMON = ["protocol", "runtime", "directory", "client", "local", *CARRIERS, "node", "gateway"]
ANALYTICS = "spark_analytics"  # stands beside the daemon: it reads traces
ALONE = {
    "base.intervals",
    "base.trace",
    "overlay.tree",
    "overlay.profile",
}  # without the daemon's dependencies
# Subscriptions are read, and wider filters searched, by the code that brokers and `filters levels` run: two
# that read the same lines would not stay alike.
BY_BROKERS = {
    *("base.errors", "brokers.conditions", "brokers.filters", "brokers.generalise", "brokers.levels"),
    *(
        "brokers.subscriptions",
        "content.attributes",
        "content.predicates",
        "content.tokens",
        "content.topics",
    ),
}
# Attacks on layers go through the scheme of brokers themselves: what breaks a model of it might not break it.
OF_LAYERS = {
    *("base.secrets", "base.wire", "brokers.items", "brokers.privacy", "brokers.full"),
}
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
        return f"{family} family" if family in ("overlay", "central", "brokers", "mqtt") else family
    return "client" if package == "hushcast" else package.removeprefix("hushcast_")


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).parts[1:]).removesuffix(".py")


def ours(tree: ast.AST) -> Iterator[str]:
    """The modules of ours that are imported anywhere in a file."""
    yield from (module for module in imports(tree) if module.split(".")[0].startswith("hushcast"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), name_of(path))


def imports(tree: ast.AST) -> Iterator[str]:
    """Every module that is imported anywhere in a file, lazily and for types included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


each_file = pytest.mark.parametrize("path", FILES, ids=name_of)


def test_there_is_something_to_look_at() -> None:
    rooms = {room_of(module_of(path)) for path in FILES}
    assert rooms - {"__init__"} == {*ARROWS, "analytics"}


@each_file
def test_arrows_between_packages_point_one_way(path: Path) -> None:
    room = room_of(module_of(path))
    found = set(ours(parsed(path)))
    if room == "analytics":
        part = module_of(path).split(".")[1]
        more = {"filters": BY_BROKERS, "brokers": OF_LAYERS}.get(part, set())
        alone = tuple(f"hushcast_protocol.{name}" for name in ALONE | more)
        assert all(module.startswith(("hushcast_analytics", *alone)) for module in found)
        return
    assert {room_of(module) for module in found} <= {room, *ARROWS.get(room, ())}


def test_no_two_rooms_stand_in_a_circle() -> None:
    for room, below in ARROWS.items():
        assert all(room not in ARROWS.get(other, ()) for other in below)


@pytest.mark.parametrize("name", sorted(ALONE))
def test_what_analyses_import_needs_the_standard_library_alone(name: str) -> None:
    path = ROOT / "protocol" / "hushcast_protocol" / f"{name.replace('.', '/')}.py"
    for module in imports(parsed(path)):
        assert module.split(".")[0] in sys.stdlib_module_names | {"__future__"}


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


@pytest.mark.parametrize("path", [f for f in FILES if f.is_relative_to(ROOT / "protocol")], ids=name_of)
def test_the_core_pretends_that_the_world_does_not_exist(path: Path) -> None:
    tops = {module.split(".")[0] for module in imports(parsed(path))}
    assert not tops & IO
    assert "open" not in called(parsed(path))


@each_file
def test_a_reader_knows_the_room(path: Path) -> None:
    doc = ast.get_docstring(parsed(path))
    assert doc, "the first sentence names the idea of the file"
    assert doc.splitlines()[0].rstrip().endswith((".", "?"))


@each_file
def test_a_file_holds_one_idea(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MAX_LINES


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@each_file
def test_a_function_is_read_at_one_look(path: Path) -> None:
    for function in functions(parsed(path)):
        assert function.end_lineno is not None
        lines = function.end_lineno - function.lineno + 1
        assert lines <= MAX_FUNCTION, f"{function.name} has {lines} lines"


@each_file
def test_a_constructor_takes_few_things(path: Path) -> None:
    for function in functions(parsed(path)):
        if function.name == "__init__":
            arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
            assert len(arguments) - 1 <= MAX_PARAMETERS, f"line {function.lineno}"


def called(tree: ast.AST) -> set[str]:
    return {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


@pytest.mark.parametrize(
    "path", [file for file in FILES if file.relative_to(ROOT).parts[0] != "cli"], ids=name_of
)
def test_only_the_command_line_prints(path: Path) -> None:
    assert not called(parsed(path)) & {"print", "pprint", "input", "sys.stdout.write"}


INJECTED = {
    # Where time and randomness enter; all else takes them as arguments.
    "runtime/hushcast_runtime/environment.py": {"random", "time.time", "os.urandom"},
    # A simulation replays from its seed, and its scheduler, too; it tells how long it took.
    "testnet/hushcast_testnet/simulation.py": {"random", "time.perf_counter"},
    # The default of an argument, and a nonce for a tor on this machine: neither replays, nor could.
    "runtime/hushcast_runtime/tor/transport.py": {"os.urandom"},
    "runtime/hushcast_runtime/tor/authentication.py": {"os.urandom"},
    # Defaults for programs, which replay nothing.
    "client/hushcast/keys.py": {"os.urandom"},
}
SOURCES = {
    *("time.time", "time.time_ns", "time.monotonic", "time.perf_counter", "time.sleep"),
    *("os.urandom", "os.getrandom", "uuid.uuid4", "datetime.now", "datetime.datetime.now"),
}


def world(tree: ast.AST) -> set[str]:
    """The sources of time and chance that a file names."""
    found = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)} & SOURCES
    modules = set(imports(tree))
    found |= {module.split(".")[0] for module in modules if module.split(".")[0] in ("random", "secrets")}
    return found | {module for module in modules if module in SOURCES}


@pytest.mark.parametrize(
    "path",
    # Testnets and the command line are tools around real processes: they wait for real time.
    [f for f in FILES if f.relative_to(ROOT).parts[0] in DAEMON]
    + [ROOT / "testnet" / "hushcast_testnet" / "simulation.py"],
    ids=name_of,
)
def test_time_and_chance_are_injected(path: Path) -> None:
    assert world(parsed(path)) <= INJECTED.get(name_of(path), set())


def test_the_list_of_exceptions_is_not_longer_than_it_must_be() -> None:
    for name, allowed in INJECTED.items():
        assert world(parsed(ROOT / name)) == allowed, name
