"""The target of key stores: PEM, PKCS#12 and JKS, as truststore and as keystore."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from fuzzing.draw import Draw
from fuzzing.oracles import outcome_of, require
from pyspark_kafka._client.client.tls.certificates import parse_certificate
from pyspark_kafka._client.client.tls.der import max_iterations
from pyspark_kafka._client.client.tls.stores.certificate_store import KEYSTORE, TRUSTSTORE, parse_store
from pyspark_kafka._client.options import CertificateStore, Secret

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka.records._variant import Kernel

PASSWORDS = (Secret("changeit"), None, Secret("other-key-password"), Secret(""))
KINDS = (None, "PEM", "PKCS12", "JKS")
# More are allowed, and take longer than an input may.
_ITERATIONS = 20_000


def store(data: bytes, variants: Sequence[Kernel]) -> None:  # noqa: ARG001 - every target is called alike
    """Four bytes for role, type and passwords, then a store: it is refused, or has what its role needs."""
    draw = Draw(data)
    role, kind = draw.pick((TRUSTSTORE, KEYSTORE)), draw.pick(KINDS)
    options = CertificateStore("/store", kind=kind, password=draw.pick(PASSWORDS))
    key_password, content = draw.pick(PASSWORDS), draw.rest()
    if max_iterations(content) > _ITERATIONS:
        return
    with warnings.catch_warnings():
        # cryptography warns of stores that are BER.
        warnings.simplefilter("ignore")
        read = outcome_of(lambda: parse_store(content, options, role, key_password))
    if read.error is not None:
        require(f"{role}." in str(read.error), f"the option is not named: {read.error}")
        require("changeit" not in str(read.error), "a password is shown")
    if read.value is not None:
        certificates = read.value.authorities if role == TRUSTSTORE else read.value.keys[0].chain
        require(bool(certificates), "a store without a certificate was let through")
        for each in certificates:
            require(len(parse_certificate(each).der) <= len(each), "a certificate grew")
