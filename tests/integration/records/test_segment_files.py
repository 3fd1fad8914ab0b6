"""What docs/records.md says of segment files: a broker's `*.log` is record batches, and nothing else."""

from __future__ import annotations

from pathlib import Path

from kit.independent_client import Record, produce
from pyspark_kafka.records import decode, scan
from pyspark_kafka.testing import EmbeddedKafka


def test_a_segment_file_is_decoded_without_the_broker(tmp_path: Path) -> None:
    records = [Record(b"k%d" % number, b"v" * 200, 0, timestamp_ms=number) for number in range(500)]
    with EmbeddedKafka(data_dir=tmp_path / "data") as kafka:
        kafka.create_topic("t")
        produce(kafka.bootstrap_servers, "t", records, compression_type="lz4", batch_size=5_000)
        kafka.stop()
        segment = tmp_path / "data" / "t-0" / "00000000000000000000.log"
        data = segment.read_bytes()
    decoded = decode(data, start_offset=int(segment.stem), columns=["key", "value"])
    assert decoded.batch.to_pylist() == [{"key": record.key, "value": record.value} for record in records]
    assert decoded.next_offset == 500
    found = scan(data, 0)
    assert (found.complete_bytes, found.records) == (len(data), 500)
    assert found.batches > 1
