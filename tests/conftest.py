"""Fixtures of all tests: one private Tor network for a run, made when the first test asks for it.

A lane of tests loads only the files that have a test for it: to load all takes longer than many a test.
"""

from __future__ import annotations

import fcntl
import functools
import gc
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
import trio
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

from hushcast_runtime.logs import log
from hushcast_testnet import processes
from hushcast_testnet.tor import private_tor
from hushcast_testnet.tor.private_tor import TorNetwork

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).parent))

import helper_folders  # noqa: F401

T = TypeVar("T")

ROOT = Path(__file__).parents[1]
TOR_READY_WITHIN = 240.0  # seconds; measured 14, and 90 where three others computed, too
TESTNETS = {"tor_testnet", "tcp_testnet"}  # fixtures that run for a whole session, once asked for
LONGEST = (
    # What waits, first of `first`, then of what else is real:
    "testnet/test_whole_network.py",
    "analytics/test_attacks.py",
    "systemd/test_booted.py",
    "testnet/test_kills.py",
    "testnet/test_tor_authorities.py",
    "testnet/test_tor_failures.py",
    "testnet/test_two_releases.py",
    "testnet/test_chaos.py",
    # What computes:
    "node/test_audits.py",
    "testnet/test_faults.py",
    "node/test_relays_without_trees.py",
    "node/test_reader_losses.py",
    "node/test_past.py",
    "node/test_hosts_on_cut_days.py",
    "node/test_audits_on_cut_days.py",
    "node/test_several_directories.py",
    "node/test_hostile_porters.py",
    "node/test_expulsion.py",
    "node/test_backpressure.py",
    "node/test_cover_lines.py",
    "node/test_going_on.py",
    "node/test_excess.py",
    "testnet/test_roster_delays.py",
    "node/test_completeness.py",
)
"""Files that others would wait for if a worker came to them last: each lane begins with its own, in order.

A file stands for its group (`group_of`): those of Spark, containers and running testnets.
"""
MARKS = ("tor", "processes", "containers", "slow", "spark", "first", "soak")

# Lanes share the machine: how long one example takes says nothing.
settings.register_profile("hushcast", deadline=None)
settings.load_profile("hushcast")
# A shell has it ignored by what runs in the background, and so would the programs that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out a file whose marks, as they stand in it, let no test of it be chosen."""
    chosen = config.getoption("markexpr")
    if not chosen or collection_path.suffix != ".py" or not collection_path.name.startswith("test_"):
        return None
    return None if may_be_chosen(chosen, *marks_in(collection_path)) else True


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Check marks against their files, and have each worker begin with its share of what takes longest."""
    check_marks(items)
    for item in items:
        if item.get_closest_marker("soak") is not None:
            item.add_marker("slow")  # who leaves out what is slow means these, too
    # What these run takes its share of the machine until the end: nobody else waits beside it.
    items.sort(key=lambda item: not TESTNETS.isdisjoint(asked_for(item)))
    yield  # those that are not chosen are dropped
    # The longest first, each file whole: what a module makes for all its tests is made once.
    items.sort(key=lambda item: rank(item.path))
    told: dict[str, Any] = getattr(config, "workerinput", {})
    if told.get("dist") == "worksteal":
        files = [[*file] for _, file in itertools.groupby(items, lambda item: item.path)]
        long = [file for file in files if rank(file[0].path) < len(LONGEST)]
        short = [item for file in files[len(long) :] for item in file]
        items[:] = by_worker(long, short, told["workercount"])


def pytest_configure_node(node: Any) -> None:
    """Tell a worker how tests are dealt out: by parts of the list, or by files in its order."""
    node.workerinput["dist"] = node.config.getvalue("dist")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays: to look through it meanwhile for garbage was a third of collecting it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """What was collected stays until the end: to look through it for garbage took a tenth of quick tests."""
    gc.collect()
    gc.freeze()


class ByGroup(LoadFileScheduling):
    """Gives a file to one worker; so, too, all that shares a testnet, a JVM, or the booting of containers."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return group_of(ROOT / file) or file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByGroup | None:
    """Have `--dist loadfile` go by groups."""
    return ByGroup(config, log) if config.getvalue("dist") == "loadfile" else None


def group_of(path: Path) -> str | None:
    """What the tests of a file share with those of others in their lane; `None` if nothing that is dear."""
    _, named = marks_in(path)
    if "containers" in named:
        return "containers"
    if re.search(rf"\b({'|'.join(TESTNETS)})\b", path.read_text()):
        return "testnet"
    return "spark" if "spark" in named else None


def asked_for(item: pytest.Item) -> list[str]:
    """The fixtures that a test names, and those that a parameter of it may name."""
    call = getattr(item, "callspec", None)
    named = [value for value in call.params.values() if isinstance(value, str)] if call else []
    return [*getattr(item, "fixturenames", ()), *named]


def check_marks(items: list[pytest.Item]) -> None:
    """A mark that does not stand in the file would have it left out where it should run."""
    for item in items:
        of_all, named = marks_in(item.path)
        own = {mark.name for mark in item.iter_markers()}.intersection(MARKS)
        if not of_all <= own <= named:
            raise pytest.UsageError(f"{item.nodeid}: its file names {sorted(named)}, it has {sorted(own)}")


def rank(path: Path) -> int:
    """Where the tests of a file stand among the longest; behind them all others."""
    name = str(path.relative_to(ROOT / "tests"))
    return LONGEST.index(name) if name in LONGEST else len(LONGEST)


def by_worker(long: list[list[T]], short: list[T], workers: int) -> list[T]:
    """Order tests so that of as many parts of one length as there are workers each begins with long files.

    xdist deals out such parts, and a worker that has none left takes from the end of another's: what is left
    at the end, when there may be nothing to take, is short.
    """
    size, rest = divmod(sum(map(len, long)) + len(short), workers)
    ordered: list[T] = []
    begin = 0
    for worker in range(workers):
        first = [test for file in long[worker::workers] for test in file]
        # Earlier parts are the shorter ones, as xdist has it.
        end = begin + max(0, size + (worker >= workers - rest) - len(first))
        ordered += first + short[begin:end]
        begin = end
    return ordered + short[begin:]


@functools.cache
def marks_in(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """The marks of all tests of a file, and those that some may have."""
    text = path.read_text()
    of_all = re.search(r"^pytestmark = .*", text, re.MULTILINE)
    named = [re.findall(r"\bmark\.(\w+)", each) for each in (of_all.group() if of_all else "", text)]
    return frozenset(named[0]).intersection(MARKS), frozenset(named[1]).intersection(MARKS)


@functools.cache
def may_be_chosen(expression: str, of_all: frozenset[str], named: frozenset[str]) -> bool:
    """Whether some set of marks between the two satisfies the expression of `-m`."""
    if not {*re.findall(r"\w+", expression)} <= {*MARKS, "and", "or", "not"}:
        return True
    choices = [(True,) if mark in of_all else (False, True) if mark in named else (False,) for mark in MARKS]
    # Such expressions are Python's, too.
    sets = (dict(zip(MARKS, has, strict=True)) for has in itertools.product(*choices))
    return any(eval(expression, {}, has) for has in sets)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a program that this machine does not have."""
    if item.get_closest_marker("tor") and shutil.which("tor", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        pytest.skip("NOT TESTED: tor is not installed")
    if item.get_closest_marker("spark") and not java_is_there():
        pytest.skip("NOT TESTED: Java, which Spark runs on, is not installed")


def java_is_there() -> bool:
    """Tell whether there is a Java where Spark looks for it."""
    home = os.environ.get("JAVA_HOME")
    return Path(home, "bin", "java").exists() if home else shutil.which("java") is not None


@pytest.fixture(autouse=True)
def _logs_as_at_first() -> Iterator[None]:
    """A test that configures logs, as the command line does, leaves nothing of it to the next."""
    yield
    log.set("info", as_json=False)


@pytest.fixture
def log_lines(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """What is said from now on, in place of standard error."""
    lines: list[dict[str, object]] = []
    monkeypatch.setattr(
        log, "_write", lambda level, event, fields: lines.append({"level": level, "event": event, **fields})
    )
    return lines


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly what this machine could not show."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = {str(report.longrepr[2]) for report in skipped if "NOT TESTED" in str(report.longrepr)}
    for reason in sorted(reasons):
        count = sum(reason in str(report.longrepr) for report in skipped)
        terminalreporter.section(f"{count} tests left out", sep="!", red=True, bold=True)
        terminalreporter.line(reason)


SOME_PLANS = """
from pyspark.sql import functions as F
from hushcast_analytics.checkpoints import kept
from hushcast_analytics.spark_session import open_session
spark = open_session("local[1]", "classes", spark_driver_extraJavaOptions=f"-XX:ArchiveClassesAtExit={MADE}")
rows = kept(spark.createDataFrame([("a", 1), ("b", 2)], "name string, number long"))
sums = rows.groupBy("name").agg(F.sum("number").alias("sum"), F.countDistinct("number").alias("of"))
rows.join(sums, "name", "left").where("sum > 0").orderBy("name").distinct().collect()
rows.mapInArrow(lambda batches: batches, rows.schema).write.parquet(OUT)
spark.stop()
"""
"""What loads most of Spark's classes that small analyses need."""


@pytest.fixture(scope="session")
def quick_spark(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of programs that run Spark on little data: many plans and classes, few rows."""
    # To compile each stage takes several times as long as to interpret it.
    settings = ("spark.sql.codegen.wholeStage=false", "spark.sql.codegen.factoryMode=NO_CODEGEN")
    arguments = " ".join(f"--conf {setting}" for setting in settings)
    # The JVM's second compiler would never earn back what it takes.
    java = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    # Room for what planning loads and compiles: it took an eighth of the time to collect and to sweep it.
    java += " -XX:InitialRAMPercentage=6 -XX:NewRatio=1 -XX:MetaspaceSize=512m"
    java += " -XX:ReservedCodeCacheSize=240m -XX:-UseCodeCacheFlushing"
    # Spark's own classes need no proof: where they are not shared, that takes longer than to load them.
    java += " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
    env = {
        **os.environ,
        # It stands on Java's class path, where there may be nothing but archives, and always the same ones.
        "SPARK_CONF_DIR": str(Path(sys.prefix) / "no-spark-conf"),
        "PYSPARK_SUBMIT_ARGS": f"{arguments} pyspark-shell",
        "JDK_JAVA_OPTIONS": f"{java} -Xlog:cds*=off",
    }
    return shared_classes(env, tmp_path_factory.mktemp("classes"))


def shared_classes(env: dict[str, str], directory: Path) -> dict[str, str]:
    """Have each Java map Spark's classes as one has parsed and verified them: that is a third of a short run.

    They are kept beside what is installed; Java itself leaves them where it or Spark is of another version.
    """
    file = Path(sys.prefix) / f"spark-{version('pyspark')}-classes.jsa"
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another lane may be at it
        if not file.exists():
            made = file.with_suffix(".made")
            program = f"OUT, MADE = {str(directory / 'rows')!r}, {str(made)!r}\n{SOME_PLANS}"
            command = [sys.executable, "-c", program]
            done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=False)
            assert done.returncode == 0, done.stderr
            made.replace(file)
    java = env["JDK_JAVA_OPTIONS"]
    return {**env, "JDK_JAVA_OPTIONS": f"{java} -XX:SharedArchiveFile={file}"}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, quick_spark: dict[str, str]) -> Iterator[SparkSession]:
    """One Spark session for all tests: to start it takes seconds, its first plans half a minute of CPU."""
    from hushcast_analytics.spark_session import open_session  # loads Spark's Python: not for every test

    with pytest.MonkeyPatch.context() as patched:
        for name in quick_spark.keys() - os.environ.keys():
            patched.setenv(name, quick_spark[name])
        session = open_session(
            "local[2]",
            "tests",
            rows=0,
            spark_sql_shuffle_partitions="1",
            spark_default_parallelism="1",
            spark_local_dir=str(tmp_path_factory.mktemp("spark")),
            spark_sql_warehouse_dir=str(tmp_path_factory.mktemp("warehouse")),
            spark_driver_memory="2g",
        )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def tor_network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TorNetwork]:
    # A session outlives every test's event loop, so this has loops of its own, before and after them.
    directory = tmp_path_factory.mktemp("tor") / "network"
    network = trio.run(_up, directory)
    yield network
    trio.run(processes.stop, network.processes)


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with sdist and wheel, the wheel made from the sdist, for all tests that install one.

    Made with the build backend that is installed for development: to install it twice more takes as long.
    """
    directory = tmp_path_factory.mktemp("dist")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(directory), str(ROOT)]
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return directory


async def _up(directory: Path) -> TorNetwork:
    with trio.fail_after(TOR_READY_WITHIN):
        network = await private_tor.start(directory)
        try:
            await private_tor.wait_ready(network)
        except BaseException:
            with trio.CancelScope(shield=True):
                await processes.stop(network.processes)
            raise
    return network
