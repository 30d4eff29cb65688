"""What holds for every test."""

import os
import signal

# Tests run side by side: with a thread for each core, each would take what another needs.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_sessionstart() -> None:
    """As in a terminal: in the background some are ignored, and children would inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
