"""A transactional id against scripted brokers: faults that real ones cannot be made to show."""

from __future__ import annotations

import time

from kafka.protocol.metadata import FindCoordinatorRequest
from kafka.protocol.producer import InitProducerIdRequest, InitProducerIdResponse

from kit.fakes.scripts import Silence
from kit.fakes.tcp_cluster import TcpCluster
from kit.fakes.transactions import coordinator
from pyspark_kafka.client.cluster.kafka_client import KafkaClient
from pyspark_kafka.client.transactions.owner import TransactionalId
from pyspark_kafka.options import ConnectionOptions


def test_silent_broker_does_not_hold_up_the_search_for_the_coordinator() -> None:
    identity = InitProducerIdResponse(throttle_time_ms=0, error_code=0, producer_id=7, producer_epoch=3)
    with TcpCluster(2) as cluster, KafkaClient(ConnectionOptions(cluster.bootstrap_servers)) as client:
        client.fetch_metadata(())
        cluster.script(FindCoordinatorRequest, Silence, broker_id=0)
        cluster.script(FindCoordinatorRequest, coordinator(1), broker_id=1)
        cluster.script(InitProducerIdRequest, identity, broker_id=1)
        began_at = time.monotonic()
        fenced = TransactionalId(client, "sink", 60_000).fence()
        # One that is waited for alone has 30 s for its answer.
        assert time.monotonic() - began_at < 20
        assert (fenced.identity.producer_id, fenced.identity.producer_epoch) == (7, 3)
