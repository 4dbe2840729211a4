"""Where a program starts that `python -m` runs: before anything of it is loaded."""

from __future__ import annotations

import sys
from pathlib import Path

from hushcast_protocol.base.errors import HushcastError
from hushcast_runtime import garbage
from hushcast_runtime.processes.program import Program


def main(arguments: list[str], program: Program) -> None:
    """Run a program from the configuration that is the one argument; a failure is one line of text."""
    if len(arguments) != 2:
        sys.exit("give the path of a configuration")
    garbage.begin_loading()
    try:
        program.start(Path(arguments[1]))
    except HushcastError as error:
        sys.exit(str(error))
    finally:
        garbage.end()
