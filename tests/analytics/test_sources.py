"""Sources: what is wrong with a directory of traces is told without Spark."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hushcast_analytics.errors import TracesError
from hushcast_analytics.trace_sources import check_name, look, make_room, spark_path


def test_no_directory(tmp_path: Path) -> None:
    with pytest.raises(TracesError, match="no such directory"):
        look(str(tmp_path / "nothing"))
    (tmp_path / "file").touch()
    with pytest.raises(TracesError, match="no such directory"):
        look(str(tmp_path / "file"))


def test_nothing_in_it(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "other.jsonl").touch()
    with pytest.raises(TracesError, match=r"no \*.observations.jsonl"):
        look(str(tmp_path))


def test_lines_below_are_found_and_measured(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "relay-0.observations.jsonl").write_text("x" * 3500)
    assert look(str(tmp_path)) == 10


def test_tables_are_found_and_half_written_ones_refused(tmp_path: Path) -> None:
    (tmp_path / "observations" / "run=a").mkdir(parents=True)
    (tmp_path / "observations" / "run=a" / "part.parquet").write_bytes(bytes(1200))
    with pytest.raises(TracesError, match="half written"):
        look(str(tmp_path))
    (tmp_path / "truths" / "run=a").mkdir(parents=True)
    assert look(str(tmp_path)) == 100


@pytest.mark.parametrize("source", ["hdfs://here/traces", "s3a://bucket/traces", "/tmp/*/traces"])
def test_what_only_spark_can_tell(source: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert look(source) is None
    make_room("run", source)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert look(str(tmp_path / "nothing")) is None


def test_a_second_run_of_one_name(tmp_path: Path) -> None:
    make_room("a", str(tmp_path / "new"))
    assert (tmp_path / "new").is_dir()
    (tmp_path / "observations" / "run=a").mkdir(parents=True)
    with pytest.raises(TracesError, match="a run a already"):
        make_room("a", str(tmp_path))


def traced(directory: Path, name: str = "relay-0.observations.jsonl") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text("x\n")
    return directory / name


def test_links_that_lead_back_are_told_at_once(tmp_path: Path) -> None:
    traced(tmp_path / "run")
    for name in ("one", "other"):  # whoever followed both would take 2 to the power of 40 ways
        (tmp_path / "run" / name).symlink_to("..")
    with pytest.raises(TracesError, match="by a link: its lines would count twice"):
        look(str(tmp_path))


@pytest.mark.parametrize("place", ["_run", ".run", "run/_part", "run"])
@pytest.mark.parametrize("name", ["_r.truth.jsonl", ".r.truth.jsonl", "a:b.truth.jsonl", "r.truth.jsonl"])
def test_what_spark_leaves_out_is_told(tmp_path: Path, place: str, name: str) -> None:
    traced(tmp_path / "good")
    traced(tmp_path / place, name)
    if (place, name) == ("run", "r.truth.jsonl"):
        look(str(tmp_path))
        return
    with pytest.raises(TracesError, match="Spark does not read"):
        look(str(tmp_path))


def test_what_is_compressed_is_told(tmp_path: Path) -> None:
    traced(tmp_path / "good")
    traced(tmp_path / "good", "relay-1.truth.jsonl.gz")
    with pytest.raises(TracesError, match=r"relay-1.truth.jsonl.gz is compressed"):
        look(str(tmp_path))


def test_signs_in_the_name_of_a_directory_stand_for_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, path in {"run[1]": r"run\[1\]", "a{b}*": r"a\{b\}\*", "a:b": "a:b"}.items():
        traced(tmp_path / name)
        assert look(name) is not None
        assert spark_path(name) == f"{tmp_path}/{path}"
    assert spark_path("run*") == "run*", "a pattern"
    traced(tmp_path / "a:[b]")
    with pytest.raises(TracesError, match="no name with a colon"):
        look("a:[b]")


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    os.mkfifo(traced(tmp_path).with_name("pipe.truth.jsonl"))
    with pytest.raises(TracesError, match=r"pipe.truth.jsonl is not a file"):
        look(str(tmp_path))
    (tmp_path / "pipe.truth.jsonl").unlink()
    (tmp_path / "gone.truth.jsonl").symlink_to("nowhere")
    with pytest.raises(TracesError, match=r"gone.truth.jsonl is not a file"):
        look(str(tmp_path))


@pytest.mark.parametrize("name", ["a[b].jsonl", "a*.jsonl", "{a,b}", "_a", ".a", "a:b", "a.gz", "a.zst"])
def test_a_file_is_never_taken_for_another(tmp_path: Path, name: str) -> None:
    check_name(tmp_path / "a b%20.jsonl")
    with pytest.raises(TracesError, match="rename it"):
        check_name(tmp_path / name)
