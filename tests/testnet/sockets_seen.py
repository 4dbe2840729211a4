"""The sockets of processes, as the kernel tells of them."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from pathlib import Path

LOOPBACK = "0100007F"  # 127.0.0.1 as /proc shows it


def socket_owners(pids: list[int]) -> dict[int, int]:
    """Return the owner of each socket inode among some processes."""
    owners = {}
    for pid in pids:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed meanwhile
                if match := re.fullmatch(r"socket:\[(\d+)\]", str(descriptor.readlink())):
                    owners[int(match[1])] = pid
    return owners


def look_at_sockets(
    pids: dict[str, int], tor_pids: set[int], doors: set[int]
) -> tuple[Counter[str], set[tuple[str, tuple[str, int], tuple[str, int]]]]:
    """Look at every internet socket; return how many of each are connected, and to whom but their tor."""
    owners = socket_owners([*pids.values(), *tor_pids])
    connected, strange = Counter[str](), set()
    names = {pid: name for name, pid in pids.items()}
    # The kernel's table is of a network namespace, and as long for one process as for all.
    for pid in {Path(f"/proc/{pid}/ns/net").readlink(): pid for pid in names}.values():
        table = [line for kind in ("tcp", "tcp6") for line in connections(pid, kind)]
        inodes = {(local, remote): inode for local, remote, inode, _ in table}
        for kind in ("udp", "udp6", "raw", "raw6"):
            assert not [line for line in connections(pid, kind) if owners.get(line[2]) in names]
        for local, remote, inode, listens in table:
            if (name := names.get(owners.get(inode, 0))) is None:
                continue
            assert local[0] == LOOPBACK, f"{name} has a socket on another address than 127.0.0.1"
            if listens:
                continue
            assert remote[0] == LOOPBACK, f"{name} is connected to another machine"
            connected[name] += 1
            # Opened by us to a door of tor, or by tor to our onion service.
            if remote[1] not in doors and owners.get(inodes.get((remote, local), 0)) not in tor_pids:
                strange.add((name, local, remote))
    return connected, strange


def connections(pid: int, kind: str) -> list[tuple[tuple[str, int], tuple[str, int], int, bool]]:
    """Return (local, remote, inode, whether it listens) of the sockets in the process's network namespace."""
    found = []
    path = Path(f"/proc/{pid}/net/{kind}")
    for line in path.read_text().splitlines()[1:] if path.exists() else []:
        fields = line.split()
        local, remote = ((a, int(p, 16)) for a, p in (f.split(":") for f in fields[1:3]))
        found.append((local, remote, int(fields[9]), fields[3] == "0A"))
    return found


def unix_paths(pid: int) -> set[str]:
    """Return the paths of a process's Unix sockets; those that were never bound have an empty one."""
    owners = socket_owners([pid])
    lines = Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]
    found = [line.split() for line in lines]
    return {"".join(fields[7:]) for fields in found if int(fields[6]) in owners}
