"""The pages about security: presets that work as they are pasted, numbers that are those of the code."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest

from kit.pointers import REPO
from kit.source_tree import trees
from pyspark_kafka._client.client.login.tokens import endpoint
from pyspark_kafka._client.client.net import handshake
from pyspark_kafka._client.client.wire.frames import DECODED_LIMIT_BYTES, FRAME_LIMIT_BYTES
from pyspark_kafka._client.options import (
    OPTIONS,
    FetchOptions,
    parse_batch_read_options,
    parse_stream_read_options,
    parse_write_options,
)
from pyspark_kafka.continuous.channel import driver_side, frames

PAGE = (REPO / "docs" / "security.md").read_text()
PROMISES = (REPO / "SECURITY.md").read_text()
PROVIDERS = ["Confluent Cloud", "Azure Event Hubs", "AWS MSK", "Aiven", "Redpanda", "cert-manager", "Strimzi"]
_MIB = 1 << 20


def presets() -> list[tuple[str, dict[str, str]]]:
    """Return the presets of the page with the heading above each."""
    found = []
    for heading, text in re.findall(r"^### (.*?)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL):
        for block in re.findall(r"^```python\n(kafka = .*?)^```$", text, re.MULTILINE | re.DOTALL):
            (statement,) = ast.parse(block).body
            assert isinstance(statement, ast.Assign)
            found.append((heading, ast.literal_eval(statement.value)))
    return found


PRESETS = presets()


def test_providers_have_presets() -> None:
    assert list(dict.fromkeys(name for name, _ in PRESETS)) == PROVIDERS


@pytest.mark.parametrize(("provider", "preset"), PRESETS, ids=[name for name, _ in PRESETS])
def test_preset_is_taken_as_it_is(provider: str, preset: dict[str, str]) -> None:
    # Also placeholders: a host has no angle brackets.
    options: dict[str, Any] = {name: re.sub("<[a-z ]+>", "orders", value) for name, value in preset.items()}
    resolved: list[Any] = [
        parse_batch_read_options({**options, "subscribe": "orders"}),
        parse_stream_read_options({**options, "subscribe": "orders"}),
        parse_write_options(options, streaming=False),
        parse_write_options(options, streaming=True),
    ]
    for each in resolved:
        assert each.connection.uses_tls, provider
        assert each.notes == (), "a preset is not noted as weak or without effect"


def test_preset_holds_no_password() -> None:
    for _, preset in PRESETS:
        for name, value in preset.items():
            password = re.search(r'password="([^"]*)"', value)
            assert password is None or password[1].startswith("env:"), name
            assert not name.endswith((".password", ".secret", ".key")) or value.startswith(("env:", "file:")), name


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("A response has at most {} MiB", FRAME_LIMIT_BYTES // _MIB),
        ("at most {} MiB if it has no record batches", DECODED_LIMIT_BYTES // _MIB),
        ("and {} MiB before the\n  end of the login", handshake._GREETING_BYTES // _MIB),
        ("A response has at most {} KiB", endpoint._MAX_BODY >> 10),
        ("decompresses to at most {} MiB", FetchOptions().max_decompressed_bytes // _MIB),
        ("{} random bits for each run", frames.KEY_BYTES * 8),
        ("At most {:,} bytes of payload are accepted", frames.MAX_GREETING_BYTES),
        ("within {:g} s, from", driver_side._GREETING_SECONDS),
        ("from at most {} peers", driver_side._MAX_UNAUTHENTICATED),
        ("{} connections open", driver_side._MAX_UNAUTHENTICATED),
        ("At most {} MiB for each message", frames.MAX_PAYLOAD_BYTES // _MIB),
        ("that is silent for {:g} s", driver_side.LOST_SECONDS),
    ],
)
def test_number_of_a_promise_is_that_of_the_code(text: str, number: float) -> None:
    assert text.format(number) in PROMISES


@pytest.mark.parametrize("page", [PAGE, PROMISES], ids=["docs", "promises"])
def test_options_that_a_page_names_exist(page: str) -> None:
    known = {option.name for option in OPTIONS}
    named = set(re.findall(r"[`\"](kafka\.[a-z.]*[a-z])[`\"]", page)) | {"maxDecompressedBatchBytes", "spoolLocation"}
    assert len(named) > 3
    assert named - known == set()


def test_nothing_but_the_driver_of_continuous_queries_and_the_figures_listens() -> None:
    """`testing` binds ports to find free ones for brokers; `listen` alone is that of metrics."""
    found = set()
    listening = {"bind", "create_server", "listen", "serve_forever", "start_http_server", "start_server"}
    for file, tree in trees(containing="|".join(listening)):
        for node in ast.walk(tree):
            name = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
            if name == "listen" and isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                continue
            if name in listening:
                found.add(file)
    assert found == {"continuous/channel/driver_side.py", "_ops/metrics/export/prometheus.py", "testing/ports.py"}
