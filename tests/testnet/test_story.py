"""What a demonstration tells of one message, out of traces."""

from __future__ import annotations

import json
from pathlib import Path

from hushcast_testnet.demonstrations.story import story

MESSAGE, MAILBOX = "ab" * 32, "f" * 64
ONE, TWO = "1" * 64, "2" * 64


def written(directory: Path, lines: dict[str, list[dict]]) -> Path:
    for name, records in lines.items():
        (directory / name).write_text("".join(json.dumps(record) + "\n" for record in records))
    return directory


def test_it_tells_what_an_origin_and_a_top_relay_noted(tmp_path: Path) -> None:
    published = {"kind": "published", "message": MESSAGE, "topic": "chess", "origins": [ONE], "time": 9.0}
    received = {"kind": "received", "previous": ONE, "outcome": "forwarded", "popcount": 14}
    noted = {"message": MESSAGE, "tokens": ["6e" * 16], "size": 1167}
    lines = list(
        story(
            written(
                tmp_path,
                {
                    "relay-1.truth.jsonl": [{"kind": "started", "node": ONE, "role": "relay", "time": 0.0}],
                    "relay-2.truth.jsonl": [{"kind": "started", "node": TWO, "role": "relay", "time": 0.0}],
                    "client-1.truth.jsonl": [
                        {"kind": "subscribed", "topic": "chess", "mailbox": MAILBOX, "time": 1.0},
                        {"kind": "delivered", "message": MESSAGE, "topic": "chess", "time": 9.4},
                    ],
                    "client-2.truth.jsonl": [published],
                    "relay-1.observations.jsonl": [
                        {"kind": "drop", "time": 9.0} | noted,
                        {"kind": "received", "time": 9.0, "outcome": "forwarded", "popcount": 0} | noted,
                        {"kind": "sent", "time": 9.1, "next": TWO} | noted,
                    ],
                    "relay-2.observations.jsonl": [
                        {"time": 9.2} | received | noted,
                        {"kind": "sent", "time": 9.3, "next": MAILBOX} | noted,
                    ],
                },
            )
        )
    )
    assert lines[0] == "client-2 published it on “chess”. 2 relays saw it; client-1 got it, within 400 ms."
    origin, top = lines.index("  relay-1 · origin: here it entered the network"), len(lines)
    top = lines.index("  relay-2 · last relay: next to a box")
    assert "    saw      It sent it on to relay-2." in lines[origin:top]
    assert "    saw      It came from relay-1." in lines[top:]
    saw = [line for line in lines[1:] if line.startswith("    saw")]
    assert not any(
        secret in line for line in saw for secret in ("chess", "client-1", "client-2", MAILBOX[:8])
    )


def test_without_a_message_that_passed_two_relays_there_is_none(tmp_path: Path) -> None:
    assert list(story(tmp_path)) == []
