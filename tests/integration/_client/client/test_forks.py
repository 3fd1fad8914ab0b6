"""What a forked child has of its parent: no wait, no connection."""

from __future__ import annotations

import os
import threading

from kit.fakes.schema_registry import RegistryAnswer, SchemaRegistryServer
from kit.waiting import PATIENCE_S
from pyspark_kafka._client.client.tls import contexts
from pyspark_kafka._client.client.waiting import stalls
from pyspark_kafka._client.client.waiting.stalls import Contact, Stall
from pyspark_kafka._client.options import RegistryOptions
from pyspark_kafka._typed.registry.connect import open_registry

LONG = '"long"'


def test_a_forked_child_reports_by_itself() -> None:
    with Stall(lambda: "in the parent", Contact()):
        child = os.fork()
        if child == 0:
            waits = stalls._MONITOR
            os._exit(1 if waits._waiting or waits._thread or waits.innermost() else 0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_forked_child_gets_a_tls_context_while_the_parent_builds_one() -> None:
    with contexts._CONTEXTS._lock:
        child = os.fork()
        if child == 0:
            os._exit(1 if contexts._CONTEXTS._lock.locked() else 0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_forked_child_asks_with_connections_of_its_own(schema_registry: SchemaRegistryServer) -> None:
    """Spark's daemon forks its workers; here the parent has a registry, and another thread of it is asking."""
    schema_registry.add("orders-value", LONG)
    schema_registry.add("other-value", '"int"')
    options = RegistryOptions(urls=(schema_registry.url,), timeout_ms=20_000)
    registry = open_registry(options)
    registry.schema_by_id(1)
    schema_registry.next_answers([RegistryAnswer(held=True)])
    asking = threading.Thread(target=registry.schema_by_id, args=(2,))
    asking.start()
    while schema_registry.count("/schemas/ids/2") < 1:
        asking.join(0.01)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            # What is in flight in the parent is not in flight here.
            own = open_registry(options)
            code = 0 if own is not registry and own.schema_by_id(2).text == '"int"' else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    schema_registry.release()
    asking.join(PATIENCE_S)
    assert registry.schema_by_id(2).text == '"int"'
    assert schema_registry.count("/schemas/ids/2") == 2
