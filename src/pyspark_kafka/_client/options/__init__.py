"""Every option declared once, parsed once on the driver into frozen values. Nothing else sees strings.

Other packages import from here, never from a room below. The rooms, each importing only rooms above it in this list:

- `references`, `secret_echoes`: what options may name in this process; secrets that a server repeats.
- `tracers`: the tracer of a process, if its administrator allows the exporters.
- `values/`: the resolved options of a query; frozen, picklable.
- `parse/`: one text to one value.
- `catalogue/`: the table of all options: name, text, parser, field, comparison with Spark's connector.
- `resolve/`: all options of a query together, to values. `parse_read_options`, `parse_write_options` and the like start
  here.
- `page`: the catalogue as `docs/options.md`.

Invariant: a default and a name stand once. No Spark, no Kafka client, no I/O but secrets that are revealed, and paths.
"""

from pyspark_kafka._client.options.catalogue import OPTIONS
from pyspark_kafka._client.options.catalogue.option import EVERYWHERE, Option, Scope
from pyspark_kafka._client.options.parse.offsets_json import parse_specific_offsets
from pyspark_kafka._client.options.parse.times import Moment, duration_ms, looks_like_seconds, moment
from pyspark_kafka._client.options.references import check_reference
from pyspark_kafka._client.options.resolve.login import parse_login
from pyspark_kafka._client.options.resolve.read import (
    parse_batch_read_options,
    parse_read_options,
    parse_stream_read_options,
)
from pyspark_kafka._client.options.resolve.write import parse_write_options
from pyspark_kafka._client.options.tracers import option_tracer
from pyspark_kafka._client.options.values.connection import ConnectionOptions
from pyspark_kafka._client.options.values.formats import (
    CorruptMode,
    FormatName,
    FormatOptions,
    FramingName,
    RegistryOptions,
    TypedReadOptions,
    TypedWriteOptions,
)
from pyspark_kafka._client.options.values.read import (
    BatchReadOptions,
    FetchOptions,
    StreamReadOptions,
    Subscription,
)
from pyspark_kafka._client.options.values.revealed import HiddenBytes, Revealed
from pyspark_kafka._client.options.values.secret import Secret
from pyspark_kafka._client.options.values.security import (
    LOGIN_MODULES,
    KerberosLogin,
    Login,
    PlainLogin,
    ReferredLogin,
    ScramLogin,
)
from pyspark_kafka._client.options.values.tls import CertificateStore, TlsOptions
from pyspark_kafka._client.options.values.tokens import (
    UNSIGNED_TOKENS_NOTE,
    MskIamLogin,
    OAuthLogin,
    TokenEndpoint,
    TokenFile,
    TokenFunction,
    TokenRenewal,
    UnsignedToken,
)
from pyspark_kafka._client.options.values.traces import TraceOptions
from pyspark_kafka._client.options.values.write import ExactlyOnceOptions, ProducerOptions, WriteOptions

__all__ = [
    "EVERYWHERE",
    "LOGIN_MODULES",
    "OPTIONS",
    "UNSIGNED_TOKENS_NOTE",
    "BatchReadOptions",
    "CertificateStore",
    "ConnectionOptions",
    "CorruptMode",
    "ExactlyOnceOptions",
    "FetchOptions",
    "FormatName",
    "FormatOptions",
    "FramingName",
    "HiddenBytes",
    "KerberosLogin",
    "Login",
    "Moment",
    "MskIamLogin",
    "OAuthLogin",
    "Option",
    "PlainLogin",
    "ProducerOptions",
    "ReferredLogin",
    "RegistryOptions",
    "Revealed",
    "Scope",
    "ScramLogin",
    "Secret",
    "StreamReadOptions",
    "Subscription",
    "TlsOptions",
    "TokenEndpoint",
    "TokenFile",
    "TokenFunction",
    "TokenRenewal",
    "TraceOptions",
    "TypedReadOptions",
    "TypedWriteOptions",
    "UnsignedToken",
    "WriteOptions",
    "check_reference",
    "duration_ms",
    "looks_like_seconds",
    "moment",
    "option_tracer",
    "parse_batch_read_options",
    "parse_login",
    "parse_read_options",
    "parse_specific_offsets",
    "parse_stream_read_options",
    "parse_write_options",
]
