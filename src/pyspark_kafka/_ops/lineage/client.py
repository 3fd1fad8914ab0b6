"""OpenLineage's own client, configured as for any program: `OPENLINEAGE_URL`, `openlineage.yml` and so on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark_kafka._client.options import check_reference
from pyspark_kafka.errors import MissingDependencyError, SetupError
from pyspark_kafka.version import install_command

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark_kafka._ops.lineage.values import RunFacts, State

# The address of a clone may hold a password or a token, and the client would add it to each event.
_CONFIG = {"facets": {"source_code_location": {"disabled": True}}}


class ClientOfOpenLineage:
    """Makes and sends events with the classes of the package `openlineage-python`.

    Args:
        client: an `OpenLineageClient`.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    @property
    def is_disabled(self) -> bool:
        """Whether `OPENLINEAGE_DISABLED` is set, or the configuration sends events nowhere."""
        return bool(self._client.transport.kind == "noop")

    def event(self, facts: RunFacts, state: State, time: datetime) -> Any:
        """Return an event; see `events.run_event`."""
        from pyspark_kafka._ops.lineage.events import run_event  # noqa: PLC0415 - imports the optional package

        return run_event(facts, state, time)

    def emit(self, event: Any) -> None:
        """Send an event; blocks, and raises whatever the transport raises."""
        self._client.emit(event)

    def close(self) -> None:
        """Close the transport."""
        self._client.close(0.0)


def open_client() -> ClientOfOpenLineage:
    """Return the client; opens no connection.

    Raises:
        MissingDependencyError: the package `openlineage-python` is not installed.
        OptionError: `PYSPARK_KAFKA_REFERENCES` does not allow the file of the configuration.
        SetupError: the configuration is not valid.
    """
    try:
        from openlineage.client import OpenLineageClient  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingDependencyError(
            "Lineage needs the Python package 'openlineage-python', which cannot be imported. Queries are not "
            "affected.",
            condition="MISSING_DEPENDENCY",
            hint=f"Install it where this program runs: {install_command('lineage')}.",
            parameters={"package": "openlineage-python"},
        ) from error
    _check_file()
    try:
        return ClientOfOpenLineage(OpenLineageClient(config=_CONFIG))
    except Exception as error:
        raise SetupError(
            f"The client of OpenLineage cannot be set up: {type(error).__name__}: {error}. No lineage is sent; queries "
            "are not affected.",
            condition="LINEAGE_NOT_CONFIGURED",
            hint="Correct OPENLINEAGE_URL, or the file openlineage.yml.",
        ) from error


def _check_file() -> None:
    """Refuse the file that the client would read, if the administrator of the process does not allow it."""
    named = os.environ.get("OPENLINEAGE_CONFIG")
    places = [*([Path(named)] if named else ()), Path("openlineage.yml"), Path.home() / ".openlineage/openlineage.yml"]
    found = next((path for path in places if path.is_file()), None)
    if found is not None:
        check_reference("file", str(found.absolute()), "OPENLINEAGE_CONFIG")
