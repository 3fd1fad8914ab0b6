"""All targets by name, with what makes their inputs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from fuzzing import codec_targets
from fuzzing.batch_target import batch
from fuzzing.channel_target import channel
from fuzzing.checkpoint_target import checkpoint
from fuzzing.client_targets import fetch_response, frame, token_response
from fuzzing.damage_target import damaged_fetch
from fuzzing.encode_target import encode
from fuzzing.login_targets import jaas, oauth_token, sasl
from fuzzing.mutation import mutate_bytes
from fuzzing.record_mutation import mutate_records
from fuzzing.registry_target import proto_text, registry_answer
from fuzzing.schema_target import schema_text
from fuzzing.store_target import store
from fuzzing.value_targets import avro_values, framing, json_values, mutate_values, protobuf_values

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from pyspark_kafka.records._variant import Kernel


@dataclass(frozen=True)
class Target:
    """One thing that is fuzzed.

    Attributes:
        run: takes an input and the variants of the kernel to run it on; raises when something is found.
        mutate: makes an input out of one or two others.
    """

    run: Callable[[bytes, Sequence[Kernel]], None]
    mutate: Callable[[bytes, bytes, Random], bytes] = mutate_bytes


TARGETS = {
    "frame": Target(frame),
    "fetch_response": Target(fetch_response),
    "damaged_fetch": Target(damaged_fetch),
    "token_response": Target(token_response),
    "batch": Target(batch, mutate_records),
    **{name: Target(run) for name, run in codec_targets.TARGETS.items()},
    "encode": Target(encode),
    "channel": Target(channel),
    "checkpoint": Target(checkpoint),
    "store": Target(store),
    "sasl": Target(sasl),
    "jaas": Target(jaas),
    "oauth_token": Target(oauth_token),
    "json_values": Target(json_values, mutate_values),
    "avro_values": Target(avro_values, mutate_values),
    "protobuf_values": Target(protobuf_values, mutate_values),
    "framing": Target(framing, partial(mutate_values, head=2)),
    "schema_text": Target(schema_text),
    "proto_text": Target(proto_text),
    "registry_answer": Target(registry_answer),
}
