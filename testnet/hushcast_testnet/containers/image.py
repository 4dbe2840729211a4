"""The image: one for all containers, named by a hash of its contents, built once for each code state."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import trio

from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.transports.base import TransportError
from hushcast_testnet.containers.engine import Engine

DEBIAN = "debian:bookworm-slim"
_DEBIANS_PYTHON = (3, 11)
_ROOT = Path(__file__).parents[3]
_CONTAINERFILE = Path(__file__).with_name("Containerfile")
_PACKAGES = (
    "protocol",
    "runtime",
    "directory",
    "client",
    "local",
    "overlay",
    "central",
    "brokers",
    "node",
    "testnet",
    "cli",
)
_BUILT_BY = "hatchling"


async def require_image(engine: Engine, progress: Callable[[str], None]) -> str:
    """Return the name of the image of this very code, built if it is not there.

    Wheels are made outside, by this Python; the image has the same one. Raises `UsageError` outside of a
    clone, `TransportError` when the engine cannot build.
    """
    name = f"hushcast-testnet:{_digest()}"
    if await engine.try_run("image", "inspect", name):
        return name
    progress("building the image: a minute or two, once for each change of the code")
    base = DEBIAN
    if sys.version_info[:2] != _DEBIANS_PYTHON:
        base = f"python:{sys.version_info.major}.{sys.version_info.minor}-slim-bookworm"
    with tempfile.TemporaryDirectory(prefix="hushcast-image-") as folder:
        context = Path(folder)
        shutil.copy(_CONTAINERFILE, context)
        await _make_wheels(context / "dependencies", context / "wheels")
        # In a build podman would need more of the kernel than it has in a container of its own.
        isolation = ["--isolation", "chroot"] if engine.program == "podman" else []
        argument = f"BASE={base}"
        options = [*isolation, "--build-arg", argument, "--file", f"{folder}/Containerfile", "--tag", name]
        try:
            await engine.run("build", *options, folder)
        except TransportError as error:
            raise TransportError(
                f"{error} (where no registry of images is reached, tools/require-podman makes Debian's image)"
            ) from None
    return name


async def _make_wheels(dependencies: Path, ours: Path) -> None:
    """Put what others wrote into one folder, and our own wheel into another."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
    if importlib.util.find_spec(_BUILT_BY) is not None:
        pip.append("--no-build-isolation")  # it would be fetched and installed once more
    await trio.run_process(
        [*pip, "--wheel-dir", str(dependencies), str(_ROOT)], capture_stdout=True, capture_stderr=True
    )
    ours.mkdir()
    for wheel in dependencies.glob("hushcast-*.whl"):
        wheel.rename(ours / wheel.name)


def _digest() -> str:
    project = _ROOT / "pyproject.toml"
    if not project.exists():
        raise UsageError("containers are built from a clone of the sources, and this is none")
    digest = hashlib.blake2b(project.read_bytes() + _CONTAINERFILE.read_bytes(), digest_size=6)
    for package in _PACKAGES:
        for file in sorted((_ROOT / package).rglob("*.py")):
            digest.update(str(file.relative_to(_ROOT)).encode() + file.read_bytes())
    return digest.hexdigest()
