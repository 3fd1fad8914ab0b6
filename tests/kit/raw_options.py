"""Options as users write them, with a login and with TLS, and the error of options that are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyspark_kafka._client.options import parse_batch_read_options
from pyspark_kafka.errors import OptionError

PLANTED = "Pl4nted-S3cret"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
KRB5 = "com.sun.security.auth.module.Krb5LoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"

SECURED_READ = {"kafka.bootstrap.servers": "b:9093", "subscribe": "t"}
SASL = {
    **SECURED_READ,
    "kafka.security.protocol": "sasl_ssl",
    "kafka.sasl.mechanism": "scram-sha-512",
    "kafka.sasl.jaas.config": f'{SCRAM} required username="ann" password="{PLANTED}";',
}
TLS = {
    **SECURED_READ,
    "kafka.security.protocol": "SSL",
    "kafka.ssl.truststore.location": "/ca.pem",
    "kafka.ssl.truststore.type": "pem",
    "kafka.ssl.keystore.location": "/client.pem",
    "kafka.ssl.keystore.type": "PEM",
    "kafka.ssl.key.password": PLANTED,
}


def refused(parse: Callable[[dict[str, Any]], object], raw: dict[str, Any]) -> OptionError:
    """Return the error of options that a parser refuses."""
    with pytest.raises(OptionError) as caught:
        parse(raw)
    return caught.value


def refused_read(raw: dict[str, Any]) -> OptionError:
    """Return the error of options that a batch read refuses."""
    return refused(parse_batch_read_options, raw)
