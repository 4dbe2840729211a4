"""Types the README and docs/first-hour.md in a bare Debian, many times, on a machine that is busy.

make deb && python tests/first_hour/__main__.py --times 10 --busy 4
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

from typed import ROOT, SHOWN, script

IMAGE = "localhost/hushcast-first-hour"
PACKAGES = ("systemd", "python3", "tor", "ca-certificates", "procps")
WITHIN = 900.0  # seconds for one run
_ENVIRONMENT = os.environ | {
    "CONTAINERS_CONF": str(ROOT / "testnet" / "hushcast_testnet" / "containers" / "containers.conf")
}


def podman(*arguments: str | Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run podman."""
    command = ["podman", *map(str, arguments)]
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=WITHIN, env=_ENVIRONMENT, check=False
    )


def typed(name: str, transport: str, number: int) -> bool:
    """Type all commands in the container `name`; print how that went, and return whether it went well."""
    began = time.monotonic()
    done = podman("exec", "-i", name, "bash", stdin=script(Path(f"/tmp/{transport}{number}"), transport))
    took = time.monotonic() - began
    left = podman("exec", name, "pgrep", "-fc", "python.*hushcast").stdout.strip()
    good = done.returncode == 0 and all(text in done.stdout for text in SHOWN) and left == "0"
    print(
        f"{transport} {number}: {'good' if good else 'BAD'}, {took:.0f} s, {left} processes left", flush=True
    )
    if not good:
        print(done.stdout[-2000:], done.stderr[-2000:], sep="\n")
    return good


def main() -> int:
    """Return 0 if all ran well."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=1, help="how often, over each transport")
    parser.add_argument("--busy", type=int, default=0, help="processes that compute meanwhile")
    parser.add_argument("--transport", nargs="+", choices=["tcp", "tor"], default=["tcp", "tor"])
    options = parser.parse_args()
    debian = platform.freedesktop_os_release()["VERSION_ID"]  # of which the image is made, too
    machine = subprocess.check_output(["dpkg", "--print-architecture"], text=True).strip()
    (package,) = (ROOT / "dist").glob(f"hushcast_*+deb{debian}_{machine}.deb")
    subprocess.run([ROOT / "tools" / "debian-image", IMAGE, *PACKAGES], check=True, env=_ENVIRONMENT)
    name = f"hushcast-first-hour-{os.getpid()}"
    # No network: all that is typed is about this machine.
    options_of_run = ("--detach", "--rm", "--network=none", "--name", name)
    started = podman("run", *options_of_run, IMAGE, "sleep", "86400")
    if started.returncode != 0:
        print(started.stderr, file=sys.stderr)
        return 1
    try:
        podman("cp", package, f"{name}:/tmp/hushcast.deb")
        installed = podman("exec", name, "dpkg", "--install", "/tmp/hushcast.deb")
        if installed.returncode != 0:
            print(installed.stdout, installed.stderr, file=sys.stderr)
            return 1
        for _ in range(options.busy):
            podman("exec", "--detach", name, "sh", "-c", "while :; do :; done")
        runs = [(transport, number) for transport in options.transport for number in range(options.times)]
        good = [typed(name, transport, number) for transport, number in runs]
        return 0 if all(good) else 1
    finally:
        podman("rm", "--force", "--time", "1", name)


if __name__ == "__main__":
    sys.exit(main())
