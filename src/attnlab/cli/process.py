"""A command as a process: which signals end it, and where messages of the engines go."""

from __future__ import annotations

import logging
import signal
from typing import NoReturn

from attnlab.cli.terminal import console


class Lines(logging.Handler):
    """Prints each message of the engines as one line."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print it."""
        console.print(record.getMessage(), markup=False, highlight=False, soft_wrap=True)


def _interrupt(signum: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def end_on_signals() -> None:
    """Queue systems send SIGTERM, SIGUSR1 or SIGHUP before the time is over: each ends a run as Ctrl-C does."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP, and means it
            signal.signal(number, _interrupt)
