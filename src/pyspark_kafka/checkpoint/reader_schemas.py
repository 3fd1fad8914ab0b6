"""The versions of a query's key and value schemas, in a file of ours next to Spark's source files.

A registry's latest version moves; the columns of a query must not.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pyspark_kafka.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka.checkpoint.files import CheckpointFiles

_VERSION = "v1"
_NAME = "reader-schemas"
_COLUMNS = ("key", "value")


@dataclass(frozen=True, slots=True)
class ReaderSchema:
    """A schema that a query reads with, as the registry names it.

    Attributes:
        subject: its subject.
        version: its version in the subject.
        schema_id: its id, as text: another means that the subject was recreated.
    """

    subject: str
    version: int
    schema_id: str


def schema_key(column: str, subject: str) -> str:
    """Return what the file has a schema under: each column has one version of each subject that it was read with."""
    return f"{column} {subject}"


class ReaderSchemasFile:
    """The file that holds the reader's schemas of one source of a query, by `schema_key`.

    Runs on: driver; blocks on the file system.

    Args:
        files: the checkpoint.
        directory: the source's own directory below it; empty if the location itself is that.
    """

    def __init__(self, files: CheckpointFiles, directory: str) -> None:
        self._files = files
        self._name = f"{directory}/{_NAME}" if directory else _NAME

    @property
    def shown(self) -> str:
        """The file, for errors."""
        return f"file {self._name} of checkpoint {self._files.shown}"

    def read(self) -> dict[str, ReaderSchema] | None:
        """Return the schemas by `schema_key`; None if there is no file.

        Raises:
            CheckpointError: the file cannot be read, is damaged, or is of another version.
        """
        data = self._files.read(self._name)
        if data is None:
            return None
        try:
            version, _, text = data.decode().partition("\n")
            if version != _VERSION:
                raise ValueError(f"it does not begin with {_VERSION}")  # noqa: TRY301 - one error for all of them
            value: dict[str, Any] = json.loads(text)
            return {key: _schema(key, each) for key, each in value.items()}
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise CheckpointError(
                f"The schemas that the query reads with cannot be read from {self.shown}: it is damaged, or was "
                "written by a newer version of pyspark-kafka. Nothing was read.",
                condition="CHECKPOINT_READER_SCHEMAS_INVALID",
                hint="Restore the file from a copy of the checkpoint. If there is none, set 'valueSchemaVersion' or "
                "'keySchemaVersion' to the version that the query has read with, and remove the file.",
            ) from error

    def is_used(self) -> bool:
        """Return whether a query has come beyond its first batch in this checkpoint."""
        return any(name.isdecimal() and int(name) > 0 for name in self._files.list("offsets"))

    def changing(self) -> CheckpointError:
        """Build the error of a file that is there when it is written, and is not when it is read."""
        return CheckpointError(
            f"The schema versions of the query cannot be kept: {self.shown} exists when it is written, "
            "but not when it is read. Nothing was read.",
            condition="CHECKPOINT_CHANGED",
            hint="Remove the file if it is a symbolic link that leads nowhere; and make sure that only one query uses "
            "this checkpoint.",
            parameters={"location": self._files.shown, "name": self._name},
        )

    def create(self, schemas: Mapping[str, ReaderSchema]) -> bool:
        """Write the file; return False if there is one, which then stays as it is.

        Raises:
            CheckpointError: the file cannot be written.
        """
        return self._files.create(self._name, _content(schemas))

    def replace(self, schemas: Mapping[str, ReaderSchema]) -> None:
        """Write the file in place of the previous one.

        Raises:
            CheckpointError: the file cannot be written.
        """
        self._files.replace(self._name, _content(schemas))


def _schema(key: str, value: dict[str, Any]) -> ReaderSchema:
    """Return an entry of the file; the subject is in it twice, so that a damaged one is not taken for another."""
    subject, version, schema_id = value["subject"], value["version"], value["schema_id"]
    if type(subject) is not str or type(schema_id) is not str or type(version) is not int or version < 1:
        raise ValueError("an entry has members of other types")
    if key not in {schema_key(column, subject) for column in _COLUMNS}:
        raise ValueError("an entry stands under another column or subject")
    # JSON may escape halves of characters, which no file of ours can hold.
    f"{subject}{schema_id}".encode()
    return ReaderSchema(subject, version, schema_id)


def _content(schemas: Mapping[str, ReaderSchema]) -> bytes:
    value = {key: asdict(schemas[key]) for key in sorted(schemas)}
    return f"{_VERSION}\n{json.dumps(value, ensure_ascii=False)}\n".encode()
