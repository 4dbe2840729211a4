"""Entries of the audit log as a person and a program read them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hushcast_gateway.purposes.records import AuditRecord

_DID = {
    "reserve": "reserves {filter}",
    "release": "takes the reservation of {filter} away",
    "presubscribe": "presubscribes to {filter}",
    "subscribe": "subscribes to {filter}",
    "control": "says {filter}",
    "message": "publishes to {filter}",
    "withdraw": "withdraws what it published to {filter}",
}


def as_json(entry: AuditRecord) -> dict[str, Any]:
    """Return an entry's keys; `time` is in UTC, `refused` is null for what was done."""
    return {
        "time": _time(entry),
        "user": entry.user,
        "client": entry.client_id,
        "what": entry.what,
        "filter": entry.filter,
        "aip": list(entry.aip),
        "pip": list(entry.pip),
        "refused": entry.refused or None,
    }


def as_text(entry: AuditRecord) -> str:
    """Return an entry as a line."""
    if entry.what == "withdrawn":
        return f"{_time(entry)} deleted, since its publisher withdrew it: what was kept of {entry.filter}"
    if entry.what == "drop":
        whose = entry.user or "anybody"
        return f"{_time(entry)} whoever runs the gateway takes {whose}'s reservation of {entry.filter} away"
    said = _DID[entry.what].format(filter=entry.filter or "(unreadable)")
    if entry.aip or entry.what == "reserve":
        said += f" for {', '.join(entry.aip) or 'nothing'}"
    if entry.pip:
        said += f", not for {', '.join(entry.pip)}"
    end = f": refused, {entry.refused}" if entry.refused else ""
    return f"{_time(entry)} {entry.user or 'anybody'} ({entry.client_id}) {said}{end}"


def _time(entry: AuditRecord) -> str:
    return datetime.fromtimestamp(entry.at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
