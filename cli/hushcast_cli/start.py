"""Where the program starts: Ctrl-C ends it at once and without a traceback while it is being loaded."""

from __future__ import annotations

# Not `signal`: that takes long to load, and the interrupt may come meanwhile.
import _signal as signal  # type: ignore[import-not-found]
import os

from hushcast_runtime import garbage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

_INTERRUPTED = 130  # as `exits.ExitCode` has it, which is not loaded yet


def _leave(number: int, frame: FrameType | None) -> None:
    # Not an exception: what is being imported could swallow it, or the interpreter report it.
    os._exit(_INTERRUPTED)


def main() -> None:
    """Run the command line of this process."""
    garbage.begin_loading()
    interruptible = signal.getsignal(signal.SIGINT) != signal.SIG_IGN  # a shell has `&` ignore it
    if interruptible:
        signal.signal(signal.SIGINT, _leave)
    try:
        from hushcast_cli.main import main as run

        if interruptible:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except KeyboardInterrupt:  # between two lines of ours
        os._exit(_INTERRUPTED)
    finally:
        if interruptible:
            signal.signal(signal.SIGINT, _leave)
        garbage.end()


if __name__ == "__main__":
    main()
