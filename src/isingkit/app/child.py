"""A process of the app: the command line, which ends when the app does."""

import os
import signal
import sys
import threading

from isingkit.cli import main


def _end_with_parent() -> None:
    """Wait for the end of standard input, which the app holds open as long as it lives."""
    while os.read(0, 1024):
        pass
    if hasattr(os, "killpg"):  # with all processes that this one has started
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    main(sys.argv[1:])
