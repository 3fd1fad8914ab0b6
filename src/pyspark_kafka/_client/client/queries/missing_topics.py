"""The error of a topic that does not exist: in which cluster, and which topic was perhaps meant."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.cluster.metadata import unknown_topic
from pyspark_kafka.errors import ConnectorError

if TYPE_CHECKING:
    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.options import ConnectionOptions
    from pyspark_kafka.errors import BrokerError

_SERVERS_NAMED = 3
# As similar as a name with a letter missing or two exchanged; `orders-1` and `orders-2` are that similar, too.
_SIMILAR = 0.75
# Short, because the look-up only improves a sentence: the error itself is known.
_MAX_LOOK_MS = 3_000


def cluster_text(options: ConnectionOptions) -> str:
    """Return a name for a cluster: the bootstrap servers that the user set for it."""
    servers = [f"{host}:{port}" for host, port in options.bootstrap_servers]
    more = ", …" if len(servers) > _SERVERS_NAMED else ""
    return f"the cluster of {', '.join(servers[:_SERVERS_NAMED])}{more}"


def find_nearest_topic(client: KafkaClient, topic: str) -> str | None:
    """Return the topic with the most similar name that the user may describe; None if there is none.

    One request more, for an error that ends the query. Blocks at most 3 s. Raises nothing: if the names cannot be
    fetched, none is returned.
    """
    try:
        existing = client.fetch_metadata(None, client.deadline().within(_MAX_LOOK_MS)).topics.values()
    except ConnectorError:
        return None
    by_letters = {known.name.lower(): known.name for known in existing if not known.is_internal and known.name != topic}
    found = difflib.get_close_matches(topic.lower(), by_letters, n=1, cutoff=_SIMILAR)
    return by_letters[found[0]] if found else None


def explain_missing_topic(client: KafkaClient, topic: str) -> BrokerError:
    """Build the error of a topic that does not exist, with its cluster and the name that was perhaps meant."""
    return unknown_topic(topic, cluster=cluster_text(client.options), nearest=find_nearest_topic(client, topic))
