"""Delegation tokens that Spark's own provider has obtained: `spark.kafka.clusters.…`, in the JVM of the driver.

The provider is part of Spark's JVM connector (`spark-token-provider-kafka-0-10`). Where it is on the class path, Spark
obtains a token for each configured cluster, renews it, and keeps it among the credentials of the user.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pyspark_kafka._client.client.login.delegation_token import jaas_text_of
from pyspark_kafka.errors import OptionError, SetupError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_KIND = "KAFKA_DELEGATION_TOKEN"
_SERVICE = "kafka.server.delegation.token."
_CLUSTERS = "spark.kafka.clusters."


def from_spark(spark: SparkSession, bootstrap_servers: str) -> dict[str, str]:
    """Return the options of a query that logs in with the token that Spark has for a cluster.

    Spark renews its tokens, and obtains new ones; a query keeps the token that it was started with.

    Runs on: driver; PySpark classic, whose program reaches the JVM. Does not block.

    Args:
        spark: the session.
        bootstrap_servers: as `kafka.bootstrap.servers`; the token is for the cluster whose
            `spark.kafka.clusters.<id>.target.bootstrap.servers.regex` matches one of them as a whole.

    Returns:
        `kafka.bootstrap.servers`, `kafka.security.protocol`, `kafka.sasl.mechanism` and `kafka.sasl.jaas.config`.

    Raises:
        SetupError: there is no token for these servers, or this is Spark Connect, where the JVM is elsewhere.
        OptionError: more than one token matches, or the mechanism of the cluster is not SCRAM.

    Source: Spark `KafkaTokenUtil.findMatchingTokenClusterConfig`.
    """
    jvm: Any = getattr(spark, "_jvm", None)
    if jvm is None:
        raise SetupError(
            "The delegation tokens of Spark's provider are in the JVM of the driver, which a program on Spark Connect "
            "does not reach.",
            condition="DELEGATION_TOKEN_MISSING",
            hint="Use pyspark_kafka.delegation_tokens.obtain.",
        )
    servers = [server.strip() for server in bootstrap_servers.split(",")]
    settings = {str(name): str(value) for name, value in spark.sparkContext.getConf().getAll()}
    found: dict[str, tuple[str, str]] = {}
    user = jvm.org.apache.hadoop.security.UserGroupInformation.getCurrentUser()
    for token in user.getCredentials().getAllTokens().toArray():
        service = str(token.getService().toString())
        if str(token.getKind().toString()) != _KIND or not service.startswith(_SERVICE):
            continue
        cluster = service.removeprefix(_SERVICE)
        pattern = settings.get(f"{_CLUSTERS}{cluster}.target.bootstrap.servers.regex", ".*")
        if _matches(pattern, servers, cluster):
            found[cluster] = (bytes(token.getIdentifier()).decode(), bytes(token.getPassword()).decode())
    if not found:
        raise SetupError(
            f"Spark has no delegation token for {bootstrap_servers}.",
            condition="DELEGATION_TOKEN_MISSING",
            hint="Set spark.kafka.clusters.<id>.auth.bootstrap.servers and put spark-token-provider-kafka-0-10 on the "
            "class path; or use pyspark_kafka.delegation_tokens.obtain.",
            parameters={"servers": bootstrap_servers},
        )
    if len(found) > 1:
        raise OptionError(
            f"More than one delegation token matches the following bootstrap servers: {bootstrap_servers}. They are of "
            f"the clusters {', '.join(sorted(found))}.",
            condition="OPTION_CONFLICT",
            hint="Narrow spark.kafka.clusters.<id>.target.bootstrap.servers.regex.",
            parameters={"servers": bootstrap_servers},
        )
    ((cluster, (token_id, key)),) = found.items()
    mechanism = settings.get(f"{_CLUSTERS}{cluster}.sasl.token.mechanism", "SCRAM-SHA-512")
    if not mechanism.startswith("SCRAM"):
        raise OptionError(
            f"Delegation token works only with SCRAM mechanism, not with '{mechanism}' of cluster '{cluster}'.",
            condition="OPTION_INVALID",
            hint=f"Set {_CLUSTERS}{cluster}.sasl.token.mechanism to SCRAM-SHA-512 or SCRAM-SHA-256.",
            parameters={"cluster": cluster},
        )
    return {
        "kafka.bootstrap.servers": bootstrap_servers,
        "kafka.security.protocol": settings.get(f"{_CLUSTERS}{cluster}.security.protocol", "SASL_SSL"),
        "kafka.sasl.mechanism": mechanism,
        "kafka.sasl.jaas.config": jaas_text_of(token_id, key),
    }


def _matches(pattern: str, servers: list[str], cluster: str) -> bool:
    try:
        return any(re.fullmatch(pattern, server) for server in servers)
    except re.error as error:
        name = f"{_CLUSTERS}{cluster}.target.bootstrap.servers.regex"
        raise OptionError(
            f"Setting '{name}' is not a regular expression: {error}.",
            condition="OPTION_INVALID",
            hint="Write it so that Java and Python read it alike.",
            parameters={"option": name},
        ) from error
