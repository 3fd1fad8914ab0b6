"""All targets by name, with what makes their inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fuzzing import codec_targets
from fuzzing.batch_target import batch
from fuzzing.channel_target import channel
from fuzzing.client_targets import fetch_response, frame
from fuzzing.encode_target import encode
from fuzzing.mutation import mutate_bytes
from fuzzing.record_mutation import mutate_records

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
    "batch": Target(batch, mutate_records),
    **{name: Target(run) for name, run in codec_targets.TARGETS.items()},
    "encode": Target(encode),
    "channel": Target(channel),
}
