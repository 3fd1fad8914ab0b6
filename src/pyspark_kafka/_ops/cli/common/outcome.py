"""The end of a command: its exit status, and the sentence of an error."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

import typer

from pyspark_kafka._ops.cli.common.output import prose_console
from pyspark_kafka.errors import ConnectorError, DeadlineError, TransportError, printable


class ExitStatus(IntEnum):
    """The exit status that a command returns to its caller."""

    WELL = 0
    # The result is not as it should be: a threshold is exceeded, a check failed.
    FINDING = 1
    # Wrong arguments, as typer has it, or nothing could be done with them.
    REFUSED = 2
    # What could be found out is shown, but not all of it: brokers are away, or a right is missing.
    INCOMPLETE = 3
    # No broker can be reached, or none responds in time: the same command may work later.
    UNREACHABLE = 4
    # 128 and the number of SIGINT, as shells have it.
    INTERRUPTED = 130


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in work that knows what it leaves.

    Args:
        left: the sentence after "Interrupted.", in place of `run_command`'s sentence.
    """

    def __init__(self, left: str) -> None:
        super().__init__(left)
        self.left = left


def run_command(work: Callable[[], ExitStatus], *, on_interrupt: str = "Nothing was changed.") -> None:
    """Run the work of a command, and end with its status.

    An error of the connector is printed as its sentence, on standard error, and ends with `REFUSED`,
    or with `UNREACHABLE` if it is about unreachable brokers.

    Args:
        work: does it, and returns the status.
        on_interrupt: the sentence after "Interrupted." if the user presses Ctrl-C; one of the work's `Interrupted`
            takes precedence over it.

    Raises:
        typer.Exit: always.
    """
    errors = prose_console(stderr=True)
    try:
        status = work()
    except ConnectorError as error:
        errors.print(str(error), style="red", markup=False, highlight=False)
        status = status_of(error)
    except KeyboardInterrupt as interrupt:
        left = interrupt.left if isinstance(interrupt, Interrupted) else on_interrupt
        errors.print(printable(f"Interrupted. {left}"), markup=False, highlight=False)
        status = ExitStatus.INTERRUPTED
    raise typer.Exit(int(status))


def status_of(error: ConnectorError) -> ExitStatus:
    """Return the exit status of a command with an error."""
    return ExitStatus.UNREACHABLE if isinstance(error, TransportError | DeadlineError) else ExitStatus.REFUSED
