"""Evidence on disk: read beside a directory that runs, told as lines that others can check."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trio
from directory_bench import NETWORK
from several_bench import FIRST, SEEDS, a_set, agreed

from hushcast_directory.server import kept_evidence
from hushcast_directory.server.kept_evidence import checked, kept_proofs, read_proofs
from hushcast_protocol.authorities.actions import AuthorityState
from hushcast_protocol.authorities.ballots import Cast
from hushcast_protocol.authorities.chain import ChainState
from hushcast_protocol.authorities.evidence import Evidence, Fork
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, signature
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.wire import encode
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.state_layout import DATABASE
from hushcast_runtime.storage.store import SqliteStore

FIVE = a_set(5, 3)
OTHER = b"o" * 32


def two_ballots() -> Evidence:
    author = SEEDS[0]
    bodies = [encode(Cast(NETWORK.id, FIRST, author.public(), bytes([one]) * 32)) for one in (1, 2)]
    signed = [Signed(body, signature(author, SignaturePurpose.BALLOT, body)) for body in bodies]
    return Evidence(author.public(), signed[0], signed[1])


def fork() -> Fork:
    heads = [agreed(FIVE, FIRST, numbers=numbers).heads[0] for numbers in ((0, 1), (0, 2))]
    return Fork(heads[0], heads[1])


async def test_what_is_kept_is_read_while_the_directory_runs(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / DATABASE)
    evidence, both = two_ballots(), fork()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.run)
        assert kept_proofs(tmp_path) == []
        kept = AuthorityState(ChainState(FIVE, fork=both))
        await store.write(Change("evidence", b"1", encode(evidence)), Change("authority", b"", encode(kept)))
        assert kept_proofs(tmp_path) == [evidence, both]
        nursery.cancel_scope.cancel()
    store.close()
    with pytest.raises(UsageError, match="cannot be read"):
        kept_proofs(tmp_path / "elsewhere")


async def test_what_is_told_can_be_checked_by_others() -> None:
    proofs = [checked(one, NETWORK.id) for one in (two_ballots(), fork())]
    lines = "".join(json.dumps(proof.line()) + "\n" for proof in proofs).encode()
    assert [checked(one, NETWORK.id) for one in read_proofs(lines, "there")] == proofs
    assert [(proof.kind, proof.epoch) for proof in proofs] == [
        ("two statements", FIRST),
        ("two heads", FIRST),
    ]
    assert proofs[0].accused == (SEEDS[0].public().hex(),)
    assert len(proofs[1].accused) == 3
    for proof in (two_ballots(), fork()):
        with pytest.raises(UsageError, match="proves nothing"):
            checked(proof, OTHER)


async def test_what_is_no_proof_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    line = json.dumps(checked(two_ballots(), NETWORK.id).line()).encode()
    first = two_ballots()
    same = Evidence(first.accused, first.first, first.first)
    with pytest.raises(UsageError, match="proves nothing"):
        checked(same, NETWORK.id)
    twice = Fork(fork().first, fork().first)
    with pytest.raises(UsageError, match="proves nothing"):
        checked(twice, NETWORK.id)
    for bad in (b"{}", b"[]", b"no", b'{"proof": "zz"}', b'{"proof": "00"}', b'{"proof": 7}', line[:-3]):
        with pytest.raises(UsageError, match="there, line 2"):
            read_proofs(line + b"\n" + bad, "there")
    monkeypatch.setattr(kept_evidence, "MAX_PROOFS_FILE", 100)
    with pytest.raises(UsageError, match="over 100 bytes"):
        read_proofs(line, "there")
