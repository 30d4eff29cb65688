"""What holds for every test."""

import signal


def pytest_sessionstart() -> None:
    """As in a terminal: in the background some are ignored, and children would inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
