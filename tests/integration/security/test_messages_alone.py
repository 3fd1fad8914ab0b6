"""From an address to a working connection with nothing but the error messages of a query as a guide.

The user knows what an administrator hands out, a certificate, or a name and a password, and not one option. Each
message must name the option to set next; of several values the user takes the one that fits what they have.
"""

from __future__ import annotations

import pytest

from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.options import parse_batch_read_options
from pyspark_kafka.errors import ConnectorError, OptionError
from pyspark_kafka.testing import EmbeddedKafka

_MAX_MESSAGES = 8


def connect(options: dict[str, str]) -> ConnectorError | None:
    """Do what a query does first: read the options, and ask the cluster for its topics; return what fails."""
    try:
        read = parse_batch_read_options(options)
        with KafkaClient(read.connection) as client:
            client.fetch_metadata(None)
    except ConnectorError as error:
        return error
    return None


@pytest.mark.parametrize("listener", ["MTLS", "SASL_SSL", "SASL_PLAINTEXT"])
def test_messages_alone_lead_from_an_address_to_a_connection(secured_kafka: EmbeddedKafka, listener: str) -> None:
    has = secured_kafka.client_options(listener, "alice", mechanism=None if listener == "MTLS" else "SCRAM-SHA-512")
    options = {
        "kafka.bootstrap.servers": secured_kafka.address(listener),
        "subscribe": "orders",
        # Not what the messages are about: a wrong guess is to be said soon.
        "kafka.default.api.timeout.ms": "3000",
    }
    messages: list[str] = []
    for _ in range(_MAX_MESSAGES):
        error = connect(options)
        if error is None:
            assert 2 <= len(messages) <= 5, messages
            return
        messages.append(str(error))
        named = [name for name in has if name in str(error) and options.get(name) != has[name]]
        assert named, f"no option to set in: {error}"
        # In the hint, unless options themselves are missing: then their names are in the message.
        assert named[0] in error.hint or isinstance(error, OptionError), messages
        options[named[0]] = has[named[0]]
    raise AssertionError("\n".join(messages))
