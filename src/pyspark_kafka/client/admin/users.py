"""Passwords of users of SCRAM (KIP-554). Queries do not need it: it is for brokers of tests. Layer: client."""

from __future__ import annotations

import hashlib
import os
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyspark_kafka.client.retry import attempts
from pyspark_kafka.client.wire.messages import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    ErrorCode,
    broker_error,
)
from pyspark_kafka.client.wire.missing_rights import Right

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark_kafka.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka.client.deadline import Deadline

# Mechanism to its number in the request (`org.apache.kafka.clients.admin.ScramMechanism`) and its hash.
_MECHANISMS = MappingProxyType({"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")})
# The fewest that brokers accept.
MINIMUM_ITERATIONS = 4096
_SALT_BYTES = 24


def set_scram_passwords(
    client: KafkaClient, passwords: Mapping[str, str], mechanisms: Iterable[str], iterations: int = MINIMUM_ITERATIONS
) -> None:
    """Set the passwords of users, and wait until brokers know them; whoever is connected stays connected.

    The cluster gets salted passwords (RFC 5802, `Hi`), never the passwords.

    Runs on: driver; blocks.

    Args:
        client: the cluster; its user needs ALTER on it.
        passwords: password by name.
        mechanisms: `SCRAM-SHA-256`, `SCRAM-SHA-512`, or both.
        iterations: of the hash.

    Raises:
        AccessError: not allowed.
        BrokerError: refused.
        DeadlineError: not done in time.
    """
    deadline = client.deadline()
    for mechanism in mechanisms:
        # Brokers refuse two mechanisms of one user in one request.
        upsertions = [_upsertion(name, password, mechanism, iterations) for name, password in passwords.items()]
        client.retrying("Setting passwords", deadline, partial(_alter, client, upsertions))
        _await_known(client, passwords, _MECHANISMS[mechanism][0], deadline)


def _upsertion(name: str, password: str, mechanism: str, iterations: int) -> Any:
    number, algorithm = _MECHANISMS[mechanism]
    salt = os.urandom(_SALT_BYTES)
    return AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name=name,
        mechanism=number,
        iterations=iterations,
        salt=salt,
        salted_password=hashlib.pbkdf2_hmac(algorithm, password.encode(), salt, iterations),
    )


def _alter(client: KafkaClient, upsertions: list[Any], deadline: Deadline) -> None:
    response = client.call(AlterUserScramCredentialsRequest(deletions=[], upsertions=upsertions), deadline=deadline)
    for result in response.results:
        if result.error_code != ErrorCode.NONE:
            what = f"Setting the password of user '{result.user}' failed"
            rights = (Right("Alter", "cluster"),)
            raise broker_error(result.error_code, what, detail=result.error_message, rights=rights)


def _await_known(client: KafkaClient, names: Iterable[str], number: int, deadline: Deadline) -> None:
    """Wait until a broker knows of a password of each user with the mechanism of that number."""
    user_class = DescribeUserScramCredentialsRequest.UserName
    wanted = set(names)
    for _ in attempts(client.backoff(), deadline=deadline):
        request = DescribeUserScramCredentialsRequest(users=[user_class(name=name) for name in wanted])
        response = client.call(request, deadline=deadline)
        known = {each.user for each in response.results if number in [info.mechanism for info in each.credential_infos]}
        if wanted <= known:
            return
    raise deadline.error("Waiting until brokers know the passwords")
