"""Makes tests/golden/formats: values that other programs wrote, with what they were told to write.

    python tools/make_format_fixtures.py [NAME ...]

Java's serializers (Avro's encoder, protobuf-java, Jackson, Apicurio's and AWS Glue's for Avro) and those of Confluent's
Python client write the rows of tools/format_cases.py. Each file has the program and its version, the schemas by id, the
values, and the rows as JSON. Expected values never come from our decoder.

Needs a JDK, Maven, a network once, the packages of the tests, and `confluent-kafka[json]`. Run it only to add a case;
the stored files are what the tests read.
"""

from __future__ import annotations

import argparse
import base64
import datetime as dt
import importlib
import importlib.metadata
import io
import json
import subprocess
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
from google.protobuf import json_format, message_factory
from grpc_tools import protoc

import format_cases as cases
from pyspark_kafka._typed.codecs.protobuf.descriptors import find_message

WRITERS_FOLDER = Path(__file__).with_name("fixture_writers")
# What each Java program of fixture_writers/ needs, from Maven Central; the first is the one that writes.
ARTIFACTS = {
    "avro": ["org.apache.avro:avro:1.12.2"],
    "protobuf": ["com.google.protobuf:protobuf-java:4.36.2"],
    "jackson": ["com.fasterxml.jackson.core:jackson-databind:2.22.4"],
    "java": ["com.google.protobuf:protobuf-java-util:4.36.2"],
    "apicurio": ["io.apicurio:apicurio-registry-serdes-avro-serde:2.6.13.Final"],
    "glue": ["software.amazon.glue:schema-registry-serde:1.1.27"],
}
ARTIFACTS["java"] += ARTIFACTS["avro"] + ARTIFACTS["protobuf"] + ARTIFACTS["jackson"]
GLUE_ID = "0f8fad5b-d9cb-469f-a165-70867728950e"
CONTENT_ID = 0x01020304
TOPIC = "orders"


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="of files, without .json; all without one")
    names = parser.parse_args().names
    cases.FORMATS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, made in golden_files(Path(folder)):
            if not names or name in names:
                (cases.FORMATS / f"{name}.json").write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")
                print(name)


def golden_files(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of each file and what it has."""
    yield from java_files(folder)
    yield from registry_files(folder)
    yield from confluent_avro()
    yield from confluent_protobuf(folder)
    yield from confluent_json()


def java_files(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what Java writes without a framing."""
    schema, rows = json.dumps(cases.AVRO), [avro_json(cases.AVRO, row) for row in cases.AVRO_ROWS]
    for writer in ("avro", "avro-blocks"):
        values = java(folder, "java", "JavaFormats", {"writer": writer, "schema": schema, "rows": rows})
        made = golden("Apache Avro's Java encoder", version("avro"), "avro", {None: schema}, cases.AVRO_ROWS, values)
        yield f"java-{writer}-{version('avro')}", made
    files = base64.b64encode(file_set(folder)).decode()
    script = {
        "writer": "protobuf",
        "schema": files,
        "message": cases.PROTO_MESSAGE.rpartition(".")[2],
        "rows": [json.dumps(proto_json(row)) for row in cases.PROTO_ROWS],
    }
    values = java(folder, "java", "JavaFormats", script)
    made = golden("protobuf-java", version("protobuf"), "protobuf", {None: files}, cases.PROTO_ROWS, values)
    yield f"java-protobuf-{version('protobuf')}", made
    json_rows = [{**row, "price": float(row["price"])} for row in cases.JSON_ROWS]
    for writer in ("json", "json-pretty", "json-ascii"):
        values = java(folder, "java", "JavaFormats", {"writer": writer, "rows": json_rows})
        made = golden("Jackson", version("jackson"), "json", {}, cases.JSON_ROWS, values)
        yield f"java-{writer}-{version('jackson')}", made


def registry_files(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what the serializers of Apicurio and of Glue write."""
    schema, rows = json.dumps(cases.AVRO), [avro_json(cases.AVRO, row) for row in cases.AVRO_ROWS]
    values = java(folder, "apicurio", "ApicurioFormats", {"schema": schema, "rows": rows, "contentId": CONTENT_ID})
    made = golden(
        "Apicurio's AvroKafkaSerializer, Legacy4ByteIdHandler",
        version("apicurio"),
        "avro",
        {CONTENT_ID: schema},
        cases.AVRO_ROWS,
        values,
        framing="confluent",
    )
    yield f"apicurio-confluent-{version('apicurio')}", made
    for compression in ("NONE", "ZLIB"):
        script = {"schema": schema, "rows": rows, "id": GLUE_ID, "compression": compression}
        values = java(folder, "glue", "GlueFormats", script)
        made = golden(
            f"AWS's serializer for Avro, compression {compression}",
            version("glue"),
            "avro",
            {GLUE_ID: schema},
            cases.AVRO_ROWS,
            values,
            framing="glue",
        )
        yield f"glue-{compression.lower()}-{version('glue')}", made


def confluent_avro() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what Confluent's serializer for Avro writes: two schemas of a subject, with ids before and in headers."""
    registry_module = importlib.import_module("confluent_kafka.schema_registry")
    serializer = importlib.import_module("confluent_kafka.schema_registry.avro").AvroSerializer
    schemas = [json.dumps(each) for each in (cases.EARLIER_AVRO, cases.AVRO)]
    written_rows = [cases.EARLIER_AVRO_ROWS, cases.AVRO_ROWS]
    rows = [*cases.EARLIER_AVRO_READ, *cases.AVRO_ROWS]
    for framing in ("confluent", "confluentHeader"):
        registry = registry_module.SchemaRegistryClient.new_client({"url": f"mock://{framing}"})
        ids: dict[Any, str] = {}
        values: list[tuple[bytes, Any]] = []
        for text, part in zip(schemas, written_rows, strict=True):
            number = registry.register_schema(f"{TOPIC}-value", registry_module.Schema(text, "AVRO"))
            ids[identity(registry, text, "AVRO") if framing == "confluentHeader" else number] = text
            write = serializer(registry, text, conf=settings(framing))
            values += [written(write, row) for row in part]
        yield (
            f"confluent-kafka-avro-{framing}-{confluent_version()}",
            golden("confluent-kafka's AvroSerializer", confluent_version(), "avro", ids, rows, values, framing=framing),
        )


def confluent_protobuf(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what Confluent's serializer for Protobuf writes, of the second message of a file."""
    registry_module = importlib.import_module("confluent_kafka.schema_registry")
    serializer = importlib.import_module("confluent_kafka.schema_registry.protobuf").ProtobufSerializer
    files = file_set(folder)
    descriptor = find_message(files, cases.PROTO_MESSAGE)
    message = message_factory.GetMessageClass(descriptor)
    messages = [json_format.ParseDict(proto_json(row), message()) for row in cases.PROTO_ROWS]
    for framing in ("confluent", "confluentHeader"):
        registry = registry_module.SchemaRegistryClient.new_client({"url": f"mock://protobuf-{framing}"})
        write = serializer(message, registry, conf={**settings(framing), "auto.register.schemas": True})
        values = [written(write, each) for each in messages]
        found = registry.get_latest_version(f"{TOPIC}-value")
        own = found.guid if framing == "confluentHeader" else found.schema_id
        made = golden(
            "confluent-kafka's ProtobufSerializer",
            confluent_version(),
            "protobuf",
            {own: base64.b64encode(files).decode()},
            cases.PROTO_ROWS,
            values,
            framing=framing,
        )
        yield f"confluent-kafka-protobuf-{framing}-{confluent_version()}", made


def confluent_json() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what Confluent's serializer for JSON Schema writes."""
    registry_module = importlib.import_module("confluent_kafka.schema_registry")
    serializer = importlib.import_module("confluent_kafka.schema_registry.json_schema").JSONSerializer
    text = json.dumps(cases.JSON_SCHEMA)
    for framing in ("confluent", "confluentHeader"):
        registry = registry_module.SchemaRegistryClient.new_client({"url": f"mock://json-{framing}"})
        number = registry.register_schema(f"{TOPIC}-value", registry_module.Schema(text, "JSON"))
        own = identity(registry, text, "JSON") if framing == "confluentHeader" else number
        write = serializer(text, registry, conf=settings(framing))
        values = [written(write, {**row, "price": float(row["price"])}) for row in cases.JSON_ROWS]
        made = golden(
            "confluent-kafka's JSONSerializer",
            confluent_version(),
            "json",
            {own: text},
            cases.JSON_ROWS,
            values,
            framing=framing,
        )
        yield f"confluent-kafka-json-{framing}-{confluent_version()}", made


def settings(framing: str) -> dict[str, Any]:
    """Return the settings of a serializer of Confluent's."""
    registry_module = importlib.import_module("confluent_kafka.schema_registry")
    names = {"confluent": "prefix_schema_id_serializer", "confluentHeader": "header_schema_id_serializer"}
    return {
        "auto.register.schemas": False,
        "subject.name.strategy": registry_module.topic_subject_name_strategy,
        "schema.id.serializer": getattr(registry_module, names[framing]),
    }


def written(write: Any, row: Any) -> tuple[bytes, list[list[str]]]:
    """Write a row with a serializer of Confluent's, and return the value and its headers."""
    serialization = importlib.import_module("confluent_kafka.serialization")
    headers: list[tuple[str, bytes]] = []
    context = serialization.SerializationContext(TOPIC, serialization.MessageField.VALUE, headers)
    return write(row, context), [[name, base64.b64encode(value).decode()] for name, value in headers]


def identity(registry: Any, text: str, kind: str) -> str:
    """Return the id across registries that a schema has."""
    registry_module = importlib.import_module("confluent_kafka.schema_registry")
    found: str = registry.lookup_schema(f"{TOPIC}-value", registry_module.Schema(text, kind)).guid
    return found


def golden(
    program: str,
    number: str,
    kind: str,
    schemas: dict[Any, str],
    rows: list[dict[str, Any]],
    values: list[Any],
    framing: str = "none",
) -> dict[str, Any]:
    """Return what a file has."""
    pairs = [(each, []) if isinstance(each, bytes) else each for each in values]
    if len(pairs) != len(rows):
        raise RuntimeError(f"{len(pairs)} values of {len(rows)} rows")
    return {
        "program": program,
        "version": number,
        "format": kind,
        "framing": framing,
        "schemas": [{"id": own, "schema": text} for own, text in schemas.items()],
        "message": cases.PROTO_MESSAGE if kind == "protobuf" else None,
        "values": [{"value": base64.b64encode(value).decode(), "headers": headers} for value, headers in pairs],
        "rows": [plain(row) for row in rows],
    }


def java(folder: Path, artifacts: str, program: str, script: dict[str, Any]) -> list[bytes]:
    """Run a Java program with a script on its standard input."""
    classes = str(jars(folder, artifacts) / "*")
    command = ["java", "-cp", classes, str(WRITERS_FOLDER / f"{program}.java")]
    output = subprocess.run(command, input=json.dumps(script), stdout=subprocess.PIPE, text=True, check=True).stdout
    return [base64.b64decode(value) for value in json.loads(output.splitlines()[-1])["values"]]


def jars(folder: Path, name: str) -> Path:
    """Bring the jars of a program and of what it needs into a folder."""
    place = folder / name
    if not place.is_dir():
        place.mkdir()
        wanted = "".join(
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{number}</version>"
            "</dependency>"
            for group, artifact, number in (each.split(":") for each in ARTIFACTS[name])
        )
        project = (
            "<project><modelVersion>4.0.0</modelVersion><groupId>golden</groupId><artifactId>golden</artifactId>"
            f"<version>1</version><dependencies>{wanted}</dependencies></project>"
        )
        (place / "pom.xml").write_text(project)
        command = ["mvn", "-q", "-f", str(place / "pom.xml"), "dependency:copy-dependencies", "-DincludeScope=runtime"]
        subprocess.run([*command, f"-DoutputDirectory={place}"], check=True)
    return place


def version(name: str) -> str:
    """Return the version of an artifact."""
    return ARTIFACTS[name][0].rpartition(":")[2]


def confluent_version() -> str:
    """Return the version of Confluent's client."""
    return importlib.metadata.version("confluent-kafka")


def file_set(folder: Path) -> bytes:
    """Compile the Protobuf schema."""
    (folder / "order.proto").write_text(cases.PROTO)
    out = folder / "order.bin"
    include = Path(str(importlib.import_module("grpc_tools").__file__)).parent / "_proto"
    arguments = ["protoc", f"-I{folder}", f"-I{include}", f"--descriptor_set_out={out}", "--include_imports"]
    if protoc.main([*arguments, str(folder / "order.proto")]) != 0:
        raise RuntimeError("protoc failed")
    return out.read_bytes()


def avro_json(schema: dict[str, Any], row: dict[str, Any]) -> str:
    """Write a row in Avro's own JSON encoding, which Java reads."""
    out = io.StringIO()
    fastavro.json_writer(out, fastavro.parse_schema(schema), [row])
    return out.getvalue()


def proto_json(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row in Protobuf's JSON mapping, without what is not set."""
    found: dict[str, Any] = plain({name: value for name, value in row.items() if value is not None})
    for inner in [found.get("inner", {}), *found["others"]]:
        if inner.get("note") is None:
            inner.pop("note", None)
    if "at" in found:
        found["at"] = found["at"].replace("+00:00", "Z")
    return found


def plain(value: Any) -> Any:
    """Return a value as JSON has it: bytes as Base64, times in ISO 8601, decimals as text."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, (dt.datetime, dt.date)):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value


if __name__ == "__main__":
    main()
