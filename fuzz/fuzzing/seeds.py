"""The inputs that fuzzing begins with: valid ones, of every version, codec and kind of batch.

Batches are built by the tests' own builder and by Java (the golden files), responses by kafka-python, compressed bytes
by the codecs' own libraries. What fuzzing found on top of them is in corpus/.
"""

from __future__ import annotations

import base64
import gzip
import struct
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cramjam
import pyarrow as pa
from kafka.protocol.consumer import FetchResponse

from fuzzing import checkpoint_target as files
from fuzzing import login_targets as logins
from fuzzing.batch_target import HEAD_BYTES
from fuzzing.channel_target import AGAIN, OTHER_SIDE, RAW, SIGNED
from fuzzing.value_seeds import VALUE_SEEDS
from kit.record_batches import ABORT, COMMIT, DELETE_HORIZON, LOG_APPEND, TRANSACTIONAL, batch, control_batch, record
from pyspark_kafka._client.client.fetch.response import NEWEST_VERSION, OLDEST_VERSION
from pyspark_kafka._client.options import LOGIN_MODULES
from pyspark_kafka._connector.sink.commit_marker import CommitMarker
from pyspark_kafka.checkpoint.topic_ids import TopicIdentities
from pyspark_kafka.continuous.epochs.coordinator import LaneReport
from pyspark_kafka.continuous.epochs.messages import (
    Alive,
    End,
    Failed,
    Hello,
    Message,
    Moved,
    Reports,
    Started,
    Stop,
    encode,
)
from pyspark_kafka.continuous.state.version_files import delta_bytes
from pyspark_kafka.continuous.state.versions import StateVersions

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "unit" / "records" / "golden"
_STORES = Path(__file__).resolve().parents[2] / "tests" / "golden" / "stores"
_TEXT = b"".join(b"a line that repeats itself %d\n" % (index % 7) for index in range(60))


def seeds_of(target: str) -> list[bytes]:
    """Return the seeds of a target."""
    if target.startswith("codec_"):
        return [b"\xff\xff" + written for written in _compressed(target.removeprefix("codec_"))]
    makers = {
        "frame": _frames,
        "fetch_response": _responses,
        "damaged_fetch": _damages,
        "token_response": _tokens,
        "batch": _batches,
        "encode": _rows,
        "channel": _talks,
        "checkpoint": _files,
        "store": _stores,
        "sasl": _exchanges,
        "jaas": _configurations,
        "oauth_token": _answers,
        **VALUE_SEEDS,
    }
    return makers[target]()


def _stores() -> list[bytes]:
    """Return the stores of keytool, each as truststore and as keystore."""
    files = sorted(_STORES.iterdir())
    return [bytes([role, 0, 0, 1]) + file.read_bytes() for file in files for role in (0, 1)]


def _damages() -> list[bytes]:
    """Return logs without and with gaps, each with a bit of the first base offset damaged."""
    logs = [bytes(12), bytes([9, 0, 9, 210, 9, 0, 9, 255, 9, 0, 9, 201])]
    return [
        bytes([version]) + struct.pack(">I", 4096) + log + struct.pack(">HHBBBH", 0, 65535, 2, 70, 0, 600)
        for version in (0, 14)
        for log in logs
    ]


def _frames() -> list[bytes]:
    tagged = struct.pack(">i", 7) + b"\x02\x00\x03abc\x05\x00body"
    sized = [flag + struct.pack(">i", len(tagged)) + tagged for flag in (b"\0", b"\1")]
    return [*sized, b"\0\x15\x03\x03\x00\x02", b"\0HTTP/1.1 400", b"\1" + struct.pack(">i", 4) + b"\0\0\0\0"]


def _tokens() -> list[bytes]:
    def text(value: bytes) -> bytes:
        return struct.pack(">h", len(value)) + value

    owner = text(b"User") + text(b"alice")
    token = owner + struct.pack(">qqq", 1, 2, 3) + text(b"id") + struct.pack(">i", 4) + b"hmac"
    renewed = token + struct.pack(">i", 1) + text(b"User") + text(b"bob")
    return [
        b"\0" + struct.pack(">h", 0) + token + struct.pack(">i", 0),
        b"\1" + struct.pack(">hqi", 0, 9, 0),
        b"\2" + struct.pack(">hi", 0, 2) + renewed + renewed + struct.pack(">i", 0),
    ]


def _exchanges() -> list[bytes]:
    step = [bytes([number]) for number in range(4)]
    return [
        step[logins.SCRAM_FIRST] + logins.FIRST,
        step[logins.SCRAM_FIRST] + b"m=x," + logins.FIRST,
        step[logins.SCRAM_FIRST] + logins.FIRST + b",ext=1",
        step[logins.SCRAM_FINAL] + b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
        step[logins.SCRAM_FINAL] + b"e=invalid-proof",
        step[logins.OAUTH],
        step[logins.OAUTH] + b'{"status":"insufficient_scope","scope":"read","openid-configuration":"https://i"}',
        step[logins.MECHANISMS] + b"SCRAM-SHA-256,OAUTHBEARER",
    ]


def _configurations() -> list[bytes]:
    oauth = 'clientId="a" clientSecret="b" scope=\'c\' extension_logicalCluster="lkc-1" ssl.truststore.location=/ca'
    settings = {
        "PLAIN": 'username="u" password="p\\"q\\101"',
        "SCRAM-SHA-256": "username=u password='p' /* id */ tokenauth=true",
        "SCRAM-SHA-512": 'username="u" // name\n password="p" debug=true',
        "OAUTHBEARER": oauth,
        "AWS_MSK_IAM": 'awsRoleArn="arn:aws:iam::1:role/r" awsDebugCreds=true',
        "GSSAPI": 'useKeyTab=true keyTab="/k" principal="a@R" storeKey=true',
    }
    unsigned = "unsecuredLoginStringClaim_sub=a unsecuredLoginNumberClaim_n=5 unsecuredLoginListClaim_s='|a|b'"
    lines = [*settings.items(), ("OAUTHBEARER", unsigned)]
    names = list(settings)
    return [
        bytes([names.index(mechanism)]) + f"{LOGIN_MODULES[mechanism]} required {text};".encode()
        for mechanism, text in lines
    ]


def _answers() -> list[bytes]:
    def part(text: bytes) -> bytes:
        return base64.urlsafe_b64encode(text).rstrip(b"=")

    claims = b'{"sub":"a","exp":2000000000,"iat":1.5,"aud":["k"],"iss":"i","scope":"r w"}'
    token = part(b'{"alg":"RS256"}') + b"." + part(claims) + b".c2ln"
    refused = b'{"error":"invalid_client","error_description":"no"}'
    return [
        b"\0" + token,
        b"\1" + struct.pack(">H", 200) + b'{"access_token":"' + token + b'","expires_in":5}',
        b"\1" + struct.pack(">H", 401) + refused,
        b"\1" + struct.pack(">H", 503) + b"<html>",
        b"\1" + struct.pack(">H", 302),
    ]


def _files() -> list[bytes]:
    state = delta_bytes([(b"key %d" % number, b"value" * number or None) for number in range(5)], None)[8:]
    contents: list[tuple[Callable[[bytes], None], bytes]] = [
        (files.state_part, bytes(state)),
        (files.state_note, b'{"parts": 3}'),
        (
            files.epoch_files,
            b'{"id":"0f8fad5b-d9cb-469f-a165-70867728950e","v":1,"offset":"{}","messages":["{}"],"state":"x"}',
        ),
        (files.state_versions, StateVersions(("n int64",), {"0/t-0": "3-a.1"}).json().encode()),
        (files.logs, b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}\n{"t":{"0":5,"1":7}}'),
        (
            files.lane_record,
            b'{"v":1,"owner":"o","group":"g","prefix":"p","lanes":1,"topics":{"t":{"id":"-","partitions":[0]}}}',
        ),
        (files.topic_ids, TopicIdentities({"t": "i"}, "end", ("t",)).to_bytes()),
        (files.marker, CommitMarker("s", "q", 7, "f", 3, 40, 1, 2).to_bytes()),
    ]
    return [bytes([files.READERS.index(reader)]) + content for reader, content in contents]


def _talks() -> list[bytes]:
    messages: list[Message] = [
        Hello(3),
        Started(1),
        Moved(1, 7),
        Reports((LaneReport(1, 7, '{"t":{"0":5}}', "{}", 10, 9), LaneReport(2, 7, "{}", "{}"))),
        Failed(0, "ValueError: boom", "Traceback", '["t",0,5]'),
        Alive(),
        End(7, 1),
        Stop(),
    ]

    def said(kind: int, payload: bytes) -> bytes:
        return bytes([kind]) + struct.pack(">H", len(payload)) + payload

    encoded = [encode(message) for message in messages]
    one_each = [b"\xff" + said(SIGNED, payload) for payload in encoded]
    whole = b"\x10" + b"".join(said(SIGNED, payload) for payload in encoded)
    return [
        *one_each,
        whole,
        whole + said(AGAIN, b""),
        whole + said(OTHER_SIDE, encoded[-1]),
        whole + said(RAW, b"GET / HTTP/1.1\r\n"),
        b"\x01" + said(RAW, b"\x16\x03\x01\x02\x00\x01"),
        b"\xff" + said(SIGNED, b"[" * 5000),
        b"\xff" + said(SIGNED, b'{"is":"end","epoch":1e400,"last":0}'),
    ]


def _responses() -> list[bytes]:
    return [
        bytes([version - OLDEST_VERSION]) + _response(version) for version in range(OLDEST_VERSION, NEWEST_VERSION + 1)
    ]


def _response(version: int) -> bytes:
    topic = FetchResponse.FetchableTopicResponse
    data = topic.PartitionData
    extra: dict[str, Any] = {}
    if version >= 12:
        extra["current_leader"] = data.LeaderIdAndEpoch(leader_id=7, leader_epoch=11)
    partitions = [
        data(
            partition_index=index,
            error_code=index,
            high_watermark=100,
            last_stable_offset=90,
            log_start_offset=0,
            aborted_transactions=[data.AbortedTransaction(producer_id=5, first_offset=3)] if index else None,
            preferred_read_replica=-1,
            records=batch([record(0, b"value"), record(1, None)]) if index else None,
            **extra,
        )
        for index in range(2)
    ]
    response = FetchResponse(
        throttle_time_ms=0,
        error_code=0,
        session_id=0,
        responses=[topic(topic="orders", topic_id=uuid.UUID(int=version), partitions=partitions)],
    )
    if version >= 16:
        response.node_endpoints = [FetchResponse.NodeEndpoint(node_id=7, host="kafka-7", port=9092, rack=None)]
        response.tags = {"node_endpoints"}
    return bytes(response.encode(version=version))


def _head(
    *,
    flags: int = 8,
    column_bits: int = 0,
    at: int = 0,
    length: int = 0,
    rows: int = 255,
    size: int = 255,
    aborted: int = 0,
) -> bytes:
    return struct.pack(">BBbHBBBBBbB", flags, column_bits, at, length, rows, size, 16, aborted, 1, 0, 4)


def _batches() -> list[bytes]:
    headers = [(b"h", b"x"), (b"", None), ("é".encode(), b"")]
    records = [
        record(0, b"first", key=b"key", headers=headers, time_delta=5),
        record(1, None, key=b"k" * 40, time_delta=-5),
        record(4, b"v" * 300, key=b""),
    ]
    plain = batch(records, base_offset=10, last_delta=6, base_time=1_700_000_000_000, max_time=1_700_000_000_009)
    appended = batch(records, base_offset=2**40, last_delta=4, attributes=LOG_APPEND | DELETE_HORIZON, max_time=77)
    many = batch([record(index, b"%d" % index) for index in range(70)], base_offset=17)
    empty = batch([], base_offset=90, last_delta=9, count=0)
    section = b"".join(records)
    codecs = [
        batch(_compress(name, section), base_offset=10, last_delta=4, count=3, attributes=codec)
        for codec, name in enumerate(("gzip", "snappy", "lz4", "zstd"), 1)
    ]
    transactions = b"".join(
        batch(
            [record(0, b"%d" % base)],
            base_offset=base,
            attributes=TRANSACTIONAL,
            producer_id=producer,
            producer_epoch=0,
        )
        if kind is None
        else control_batch(base, producer, kind)
        for base, producer, kind in (
            (0, 1, None),
            (1, 2, None),
            (2, 1, ABORT),
            (3, 2, COMMIT),
            (4, 1, None),
            (5, 1, COMMIT),
        )
    )
    golden = [path.read_bytes() for path in sorted(GOLDEN.glob("*.bin"))]
    found = [_head() + log for log in (plain, plain + many + empty, appended, *codecs, *golden)]
    found += [_head(flags=8 | 1, aborted=1, rows=1) + transactions, _head(flags=8 | 1) + transactions]
    found += [_head(flags=8 | 4, at=1, length=5, rows=1, size=1) + plain + many, _head(column_bits=63) + plain + many]
    found += [_head(flags=2 | 8, column_bits=64, rows=3) + plain + many[:-5], _head(column_bits=31, rows=0) + plain]
    return [one for one in found if len(one) - HEAD_BYTES < 4096]


def _compress(codec: str, data: bytes) -> bytes:
    made = {
        "gzip": lambda: gzip.compress(data, mtime=0),
        "snappy": lambda: bytes(cramjam.snappy.compress_raw(data)),
        "lz4": lambda: bytes(cramjam.lz4.compress(data)),
        "zstd": lambda: bytes(cramjam.zstd.compress(data)),
    }
    return made[codec]()


def _compressed(codec: str) -> list[bytes]:
    whole, half, empty = _compress(codec, _TEXT), _compress(codec, _TEXT[:200]), _compress(codec, b"")
    found = [whole, half + whole, empty, _compress(codec, bytes(60_000))]
    if codec == "snappy":
        # The framing of snappy-java, one block and several, and framed streams one behind the other.
        found += [_xerial(whole), _xerial(half, whole), _xerial(half) + _xerial(whole), _xerial()]
    if codec in {"lz4", "zstd"}:
        skippable = struct.pack("<II", 0x184D2A50, 3) + b"abc"
        found += [bytes(pa.compress(_TEXT, codec, asbytes=True)), skippable + whole, whole + skippable]
    if codec == "zstd":
        found.append(_streamed_zstd())
    return found


def _xerial(*blocks: bytes) -> bytes:
    framed = b"".join(struct.pack(">I", len(block)) + block for block in blocks)
    return b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + framed


def _streamed_zstd() -> bytes:
    """Return a frame without a content size, as a streaming writer does."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(_TEXT)
    return bytes(sink.getvalue())


def _rows() -> list[bytes]:
    row = b"\x10\x03key\x05value\x01h\x02hv" + bytes(4)
    null_row, long_row = b"\x4b", b"\x04\x02kk\x20" + b"x" * 288 + bytes(8)
    found = []
    for codec in range(5):
        for kind in range(5):
            head = struct.pack(">BHBBBBBBBHBH", codec, 9000, kind, 3, kind, 4 - kind, kind, 1, kind & 1, 7, 1, 9)
            found.append(head + row * 3 + null_row + long_row + row)
    return found
