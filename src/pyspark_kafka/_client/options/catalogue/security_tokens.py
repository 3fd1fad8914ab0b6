"""The `kafka.` options of logins with tokens: OAUTHBEARER, and AWS_MSK_IAM.

Data only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

from pyspark_kafka._client.options.catalogue.option import EVERYWHERE, Option
from pyspark_kafka._client.options.catalogue.parity import SAME
from pyspark_kafka._client.options.parse import scalars

_JAVA = "org.apache.kafka.common.security.oauthbearer."
_HANDLERS = {
    name: name
    for name in (
        f"{_JAVA}OAuthBearerLoginCallbackHandler",
        # Its name before Kafka 4.0, and the handlers of Strimzi and of MSK, which have options of their own.
        f"{_JAVA}secured.OAuthBearerLoginCallbackHandler",
        "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler",
    )
}
_RETRIEVERS = {
    f"{_JAVA}DefaultJwtRetriever": "by URL",
    f"{_JAVA}ClientCredentialsJwtRetriever": "https",
    f"{_JAVA}FileJwtRetriever": "file",
}
_IAM_HANDLER = "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
_IMPORT_PATH = re.compile(r"(?!\d)\w+(?:\.(?!\d)\w+)*:(?!\d)\w+(?:\.(?!\d)\w+)*")
_MINUTES = partial(scalars.whole_number, 1, 3_600_000, "milliseconds")
_OURS = "not a property of Java's clients"

_shared = partial(Option, scopes=EVERYWHERE, resolved_by="tokens")


def _java_class(allowed: Mapping[str, str], hint: str) -> Callable[[str], str]:
    def parse(raw: str) -> str:
        # Bundles rename the packages of Java classes; the class is the same.
        name = re.sub(r"^(?:kafkashaded|shadedmskiam|shaded)\.", "", raw.strip())
        if name not in allowed:
            raise ValueError(f"names Java code that does not run here; accepted: {', '.join(allowed)}. {hint}")
        return allowed[name]

    return parse


def _function(raw: str) -> str:
    name = raw.strip().removeprefix("call:")
    if _IMPORT_PATH.fullmatch(name) is None:
        raise ValueError(
            "must be the import path of a function, package.module:function; what it is instead is not repeated, as it "
            "may be a token"
        )
    return name


_BY_FUNCTION = "Set kafka.sasl.oauthbearer.token.callable to a function that gets the token"

TOKEN_PROPERTIES: tuple[Option, ...] = (
    _shared(
        "kafka.sasl.oauthbearer.token.endpoint.url",
        "Where tokens come from: the https URL of an OAuth token endpoint, which is called with the client's id and "
        "secret, or `file:///path` of a file with a token on every machine, which is read again when it has changed.",
        parity="https and file only; Java takes http as well",
        parse=scalars.text,
        kind="https or file URL",
        default_doc="required with OAUTHBEARER, unless there is a function",
    ),
    _shared(
        "kafka.sasl.oauthbearer.token.callable",
        "A function that returns tokens, `package.module:function`: the token as a text, or with its lifetime in ms. "
        "It runs in each process that connects.",
        parity=_OURS,
        parse=_function,
        kind="import path",
        default_doc="no function",
    ),
    _shared(
        "kafka.sasl.oauthbearer.client.credentials.client.id",
        "The client's id at the token endpoint; takes precedence over `clientId` in `kafka.sasl.jaas.config`.",
        parity=SAME,
        parse=scalars.text,
        default_doc="required with a token endpoint",
    ),
    _shared(
        "kafka.sasl.oauthbearer.client.credentials.client.secret",
        "The client's secret at the token endpoint; takes precedence over `clientSecret` in `kafka.sasl.jaas.config`.",
        parity=SAME,
        parse=scalars.secret,
        default_doc="required with a token endpoint",
        secret=True,
    ),
    _shared(
        "kafka.sasl.oauthbearer.scope",
        "The scope that is requested from the token endpoint.",
        parity=SAME,
        parse=scalars.text,
        default_doc="the endpoint's own",
    ),
    _shared(
        "kafka.sasl.oauthbearer.header.urlencode",
        "Whether the client's id and secret are URL-encoded before they are put into the header (RFC 6749, 2.3.1).",
        parity=SAME,
        parse=scalars.boolean,
        kind="`true` or `false`",
        default_doc="`false`",
    ),
    _shared(
        "kafka.sasl.oauthbearer.jwt.retriever.class",
        "The name of Java's class that gets tokens by URL, from an endpoint or from a file.",
        parity="same for the classes named here",
        parse=_java_class(_RETRIEVERS, _BY_FUNCTION),
        kind=", ".join(f"`{name}`" for name in _RETRIEVERS),
        default_doc="by the URL",
    ),
    _shared(
        "kafka.sasl.oauthbearer.scope.claim.name",
        "The claim of the token with its scopes.",
        parity=SAME,
        parse=scalars.text,
        default_doc="`scope`",
    ),
    _shared(
        "kafka.sasl.oauthbearer.sub.claim.name",
        "The claim of the token with the user.",
        parity=SAME,
        parse=scalars.text,
        default_doc="`sub`",
    ),
    _shared(
        "kafka.sasl.login.callback.handler.class",
        "The name of Java's class that logs in with tokens; it changes nothing here.",
        parity="same for the classes named here",
        parse=_java_class(_HANDLERS, _BY_FUNCTION),
        kind=", ".join(f"`{name}`" for name in _HANDLERS),
        default_doc="the class of the mechanism",
    ),
    _shared(
        "kafka.sasl.client.callback.handler.class",
        "The name of the Java class of Amazon MSK's login; it changes nothing here.",
        parity="same for the class named here",
        parse=_java_class({_IAM_HANDLER: _IAM_HANDLER}, "Remove it"),
        kind=f"`{_IAM_HANDLER}`",
        default_doc="the class of the mechanism",
    ),
    _shared(
        "kafka.sasl.msk.iam.region",
        "The region of the Amazon MSK cluster, with AWS_MSK_IAM.",
        parity=_OURS,
        parse=scalars.aws_region,
        kind="region",
        default_doc="that in the broker's name, else the environment's",
    ),
    _shared(
        "kafka.sasl.login.connect.timeout.ms",
        "Longest wait for a connection to the token endpoint.",
        parity="no bound by default there",
        parse=_MINUTES(),
        unit="ms",
        default_doc="10000",
    ),
    _shared(
        "kafka.sasl.login.read.timeout.ms",
        "Longest wait for a response of the token endpoint.",
        parity="no bound by default there",
        parse=_MINUTES(),
        unit="ms",
        default_doc="10000",
    ),
    _shared(
        "kafka.sasl.login.retry.backoff.ms",
        "Wait before a request to the token endpoint is repeated; doubles after each failure.",
        parity=SAME,
        parse=_MINUTES(),
        unit="ms",
        default_doc="100",
    ),
    _shared(
        "kafka.sasl.login.retry.backoff.max.ms",
        "Longest wait before a request to the token endpoint is repeated.",
        parity=SAME,
        parse=_MINUTES(),
        unit="ms",
        default_doc="10000",
    ),
    _shared(
        "kafka.sasl.login.refresh.window.factor",
        "The share of its lifetime after which a token is replaced.",
        parity=SAME,
        parse=scalars.decimal(0.5, 1.0),
        kind="number",
        default_doc="0.8",
    ),
    _shared(
        "kafka.sasl.login.refresh.window.jitter",
        "The greatest random share on top of the factor, so that processes do not ask at the same time.",
        parity=SAME,
        parse=scalars.decimal(0.0, 0.25),
        kind="number",
        default_doc="0.05",
    ),
    _shared(
        "kafka.sasl.login.refresh.min.period.seconds",
        "The minimum time for which a token is kept, unless its lifetime is too short for that.",
        parity=SAME,
        parse=scalars.whole_number(0, 900, "seconds"),
        unit="s",
        default_doc="60",
    ),
    _shared(
        "kafka.sasl.login.refresh.buffer.seconds",
        "The minimum time before its end at which a token is replaced, unless its lifetime is too short for that.",
        parity=SAME,
        parse=scalars.whole_number(0, 3600, "seconds"),
        unit="s",
        default_doc="300",
    ),
)
