"""The options of typed keys and values: formats, schemas, the handling of bad records.

Data only. The options of the registry are in `registry`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from pyspark_kafka._client.options.catalogue.option import EVERYWHERE, READS, WRITES, Option
from pyspark_kafka._client.options.catalogue.parity import OURS
from pyspark_kafka._client.options.parse import scalars

FORMATS = ("binary", "string", "uuid", "short", "integer", "long", "float", "double", "json", "avro", "protobuf")
FRAMINGS = ("none", "confluent", "confluentHeader", "confluentDual", "glue")
MODES = ("FAILFAST", "PERMISSIVE", "DROPMALFORMED")

_version_number = scalars.whole_number(1, scalars.INT32_MAX, "a version")


def _version(raw: str) -> int | None:
    if raw.strip().lower() == "latest":
        return None
    try:
        return _version_number(raw)
    except ValueError:
        raise ValueError(
            f"must be latest, or the number of a version from 1; got {scalars.shown_number(raw)}"
        ) from None


def _of_side(side: str) -> Iterator[Option]:
    """Yield the options of keys, or the options of values."""
    our = partial(Option, parity=OURS, resolved_by="formats", scopes=EVERYWHERE)
    yield our(
        f"{side}Format",
        f"What {side}s are. `binary` leaves them as they are. `string` is text. `uuid`, `short`, `integer`, `long`, "
        "`float` and `double` are what Kafka's serializers of these names write. The others make "
        f'`{side}` one struct column, so that `select("{side}.*")` is a table; they need `{side}Schema` or a '
        "registry. In a write, the column is encoded in this format.",
        parse=scalars.words(*FORMATS),
        kind=", ".join(f"`{name}`" for name in FORMATS),
        default_doc="`binary`",
    )
    yield our(
        f"{side}Framing",
        f"The wire format: what precedes each {side}. `confluent`: a zero byte and the schema id in 4 bytes, and with "
        "Protobuf the index or name of the message. `confluentHeader`: nothing, the id is in a header. "
        "`confluentDual`, of a read: as `confluentHeader` for records with the header, else as `confluent`. "
        "`glue`: the header of AWS Glue. The wire format is never guessed from the bytes.",
        parse=scalars.words(*FRAMINGS),
        kind=", ".join(f"`{name}`" for name in FRAMINGS),
        default_doc="`confluent` with `schema.registry.url`, `glue` with `schema.registry.region`, else `none`",
    )
    yield our(
        f"{side}Schema",
        f"The schema of the {side}s: of Avro its JSON; of Protobuf the text of a `.proto` file, or a "
        "FileDescriptorSet in Base64; of JSON a JSON Schema, columns as in `id BIGINT, name STRING`, or the JSON of "
        "Spark's schema. `file:PATH` is read from a file on the driver.",
        parse=scalars.text,
        kind="schema, or `file:PATH`",
        default_doc="the schema of the subject in the registry",
    )
    yield our(
        f"{side}Subject",
        "The subject of the schema in the registry; with Glue, the schema's name.",
        parse=scalars.text,
        default_doc=f"the topic and `-{side}`; with Glue, the topic",
    )
    yield our(
        f"{side}SchemaVersion",
        "The version of the subject: a number, or `latest`, which is looked up when the query is planned. A stream "
        "with `checkpointLocation` keeps the version that it found.",
        parse=_version,
        kind="`latest` or a whole number",
        default_doc="`latest`",
    )
    yield our(
        f"{side}Message",
        "The full name of the message, of Protobuf.",
        parse=scalars.text,
        kind="name",
        default_doc="the first message of the schema",
    )


_TIME_OPTIONS = tuple(
    Option(
        name,
        f"The pattern of fields of type `{kind}` in JSON, of keys and values, in the letters of Spark's datetime "
        f"patterns that [typed formats](typed-formats.md#times-in-json) names. {beside}",
        parity=OURS,
        resolved_by="formats",
        parse=scalars.text,
        kind="pattern",
        default_doc="RFC 3339 and similar forms",
        scopes=EVERYWHERE,
    )
    for name, kind, beside in (
        ("timestampFormat", "TIMESTAMP", "Times without an offset are in UTC. `TIMESTAMP_NTZ` has no pattern."),
        ("dateFormat", "DATE", "A text is the whole pattern."),
    )
)

_OPEN_PARTS = Option(
    "openParts",
    "What a part of a JSON Schema is that no type of a column is: of any type, of one of several types, or one that "
    "holds itself; of keys and values. `error`: `load()` or the write fails. `text`: a string that holds the JSON of "
    "the part; a write refuses a text that is not JSON.",
    parity=OURS,
    resolved_by="formats",
    parse=scalars.words("error", "text"),
    kind="`error`, `text`",
    default_doc="`error`",
    scopes=EVERYWHERE,
)

_READ_OPTIONS = (
    Option(
        "mode",
        "What happens to a key or value that cannot be read. `FAILFAST`: the query fails. `PERMISSIVE`: its column is "
        "null, and the column of `columnNameOfCorruptRecord` holds it. `DROPMALFORMED`: its row is left out; a line in "
        "the log has the number of rows left out, and the places of the first ones.",
        parity=OURS,
        field="typed_read.mode",
        parse=scalars.words(*MODES),
        kind=", ".join(f"`{name}`" for name in MODES),
        scopes=READS,
    ),
    Option(
        "columnNameOfCorruptRecord",
        "The name of the column that mode `PERMISSIVE` adds: a struct of `column` (`key` or `value`), `reason`, "
        "`message`, `schemaId`, `rawKey` and `rawValue`; null in rows that were read.",
        parity=OURS,
        field="typed_read.corrupt_column",
        parse=scalars.text,
        kind="name",
        scopes=READS,
    ),
    Option(
        "includeSchemaId",
        "Whether rows have the string columns `key_schema_id` and `value_schema_id`, if the keys or values have a wire "
        "format with ids.",
        parity=OURS,
        field="typed_read.include_schema_id",
        parse=scalars.boolean,
        kind="true, false",
        scopes=READS,
    ),
    Option(
        "maxCorruptRatio",
        "A task fails if a larger part of its records than this cannot be read, in modes `PERMISSIVE` and "
        "`DROPMALFORMED`: probably the schema is wrong, not the data.",
        parity=OURS,
        field="typed_read.max_corrupt_ratio",
        parse=scalars.decimal(0, 1),
        kind="number from 0 to 1",
        default_doc="`1.0`: never",
        scopes=READS,
    ),
    Option(
        "recursiveFieldMaxDepth",
        "The number of levels of a recursive Avro record that become columns. `1` leaves out the fields that hold "
        "their own record, `2` has them once, and so on; deeper levels are not read. `0` refuses such a schema.",
        parity=OURS,
        field="typed_read.recursive_field_max_depth",
        # As of Spark's from_avro: the columns of a record with two such fields double with each level.
        parse=scalars.whole_number(0, 15),
        kind="whole number from 0 to 15",
        scopes=READS,
    ),
)

_WRITE_OPTIONS = (
    Option(
        "autoRegisterSchemas",
        "Whether a schema that its subject does not have is registered when the write starts. If not, the write fails "
        "before a record is sent.",
        parity=OURS,
        field="typed_write.auto_register_schemas",
        parse=scalars.boolean,
        kind="true, false",
        scopes=WRITES,
    ),
)

FORMAT_OPTIONS: tuple[Option, ...] = (
    *_of_side("value"),
    *_of_side("key"),
    *_TIME_OPTIONS,
    _OPEN_PARTS,
    *_READ_OPTIONS,
    *_WRITE_OPTIONS,
)
