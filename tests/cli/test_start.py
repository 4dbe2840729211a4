"""Ctrl-C while the program is still being loaded: it ends with the usual code and nothing on the screen."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

# Interrupts this very process as soon as a module is looked for.
PROGRAM = """
import os, sys
class Interrupting:
    def find_spec(self, name, *rest):
        if name == {module!r}:
            os.kill(os.getpid(), {number})
sys.meta_path.insert(0, Interrupting())
from hushcast_cli.start import main
sys.argv = ["hushcast", "testnet", "status", "--dir", "/none"]
main()
"""


@pytest.mark.parametrize(
    "module", ["click", "hushcast_cli.exits", "hushcast_cli.testnets.testnet", "msgspec"]
)
def test_an_interrupt_ends_a_program_that_is_being_loaded(module: str) -> None:
    program = PROGRAM.format(module=module, number=int(signal.SIGINT))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.slow
def test_what_a_shell_has_put_into_the_background_is_not_interrupted() -> None:
    program = PROGRAM.format(module="click", number=int(signal.SIGINT))
    shell = f"trap '' INT; exec {sys.executable} -c '{program.replace(chr(39), chr(34))}'"
    done = subprocess.run(["sh", "-c", shell], capture_output=True, timeout=30, check=False)
    assert done.returncode == 2, "it went on, and found no testnet"


@pytest.mark.slow
def test_the_packages_launcher_lets_it_kill_and_commands_still_take_care_of_it() -> None:
    launcher = (Path(__file__).parents[2] / "tools" / "deb" / "hushcast").read_text()
    lines = "\n".join(line for line in launcher.splitlines() if "site" not in line and "main" not in line)
    program = lines + PROGRAM.format(module="msgspec", number=int(signal.SIGINT))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_a_command_looks_for_no_garbage_while_it_loads_nor_at_its_end() -> None:
    program = (
        # What starts is loaded first: to compile it, where nobody has yet, makes enough for a look.
        "import gc, sys; from hushcast_cli.start import main; sys.argv = ['hushcast', '--help'];"
        " looks = []; gc.collect(); gc.callbacks.append(lambda *_: looks.append(1))\n"
        "try:\n    main()\nexcept SystemExit:\n"
        "    print(len(looks), gc.get_freeze_count() > 10_000, file=sys.stderr)"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert done.stderr.split() == ["0", "True"]
