"""The options of the schema registry, by Confluent's and Java's names. Data only."""

from __future__ import annotations

from functools import partial

from pyspark_kafka._client.options.catalogue.option import EVERYWHERE, Option, Status
from pyspark_kafka._client.options.catalogue.parity import OURS
from pyspark_kafka._client.options.parse import registry, scalars

_our = partial(Option, parity=OURS, scopes=EVERYWHERE)
_resolved = partial(_our, resolved_by="registry")
_WITHOUT_ONE = (
    "Certificates and keys of a registry are PEM files, which have no store password. Remove it; the password of an "
    "encrypted key is `schema.registry.ssl.key.password`."
)
_NO_OAUTH = (
    "Tokens of a registry are not fetched here. Set `schema.registry.bearer.auth.token` to a function that returns "
    "one, `call:package.module:function`."
)

REGISTRY_OPTIONS: tuple[Option, ...] = (
    _resolved(
        "schema.registry.url",
        "The address of a schema registry with Confluent's API (also Redpanda, Karapace, Apicurio at "
        "`/apis/ccompat/v7`); several addresses of one registry are separated by commas, and tried in turn. "
        "Proxies of the environment (`https_proxy`) are used. Credentials in it are used like "
        "`schema.registry.basic.auth.user.info`, and not shown.",
        parse=registry.registry_addresses,
        kind="http or https URLs",
        default_doc="no registry",
    ),
    _resolved(
        "schema.registry.basic.auth.user.info",
        "User and password at the registry, `user:password`, or better a reference to them: Spark shows the text in "
        "plans and in its event log.",
        parse=registry.user_info,
        default_doc="no login",
        secret=True,
    ),
    _resolved(
        "schema.registry.basic.auth.credentials.source",
        "Where user and password come from: `USER_INFO`, the option `schema.registry.basic.auth.user.info`, or `URL`. "
        "Each is found without this option. Java's `SASL_INHERIT` is refused.",
        parse=registry.credentials_source,
        kind="`USER_INFO`, `URL`",
        default_doc="found automatically",
    ),
    _our(
        "schema.registry.bearer.auth.token",
        "A token that is sent to the registry as it is.",
        field="registry.bearer_token",
        parse=scalars.secret,
        default_doc="no token",
        secret=True,
    ),
    _resolved(
        "schema.registry.bearer.auth.credentials.source",
        "Where the token comes from: `STATIC_TOKEN`, the option `schema.registry.bearer.auth.token`. Java's other "
        "sources are refused.",
        parse=registry.token_source,
        kind="`STATIC_TOKEN`",
        default_doc="`STATIC_TOKEN`",
    ),
    _resolved(
        "schema.registry.allow.http.credentials",
        "Whether credentials may be sent to an http URL of another machine, where they cross the network as they are.",
        parse=scalars.boolean,
        kind="true, false",
        default_doc="`false`",
    ),
    _resolved(
        "schema.registry.ssl.ca.location",
        "PEM file of the certificates to trust, on every machine that runs the driver or an executor.",
        parse=scalars.location(),
        kind="file",
        default_doc="the system's certificates",
    ),
    _resolved(
        "schema.registry.ssl.certificate.location",
        "PEM file of the client's own certificate chain, on every machine.",
        parse=scalars.location(),
        kind="file",
        default_doc="no client certificate",
    ),
    _resolved(
        "schema.registry.ssl.key.location",
        "PEM file of the client's private key, on every machine.",
        parse=scalars.location(),
        kind="file",
        default_doc="the file of the certificate",
    ),
    _our(
        "schema.registry.ssl.key.password",
        "The password of the private key, if it is encrypted.",
        field="registry.key_password",
        parse=scalars.secret,
        default_doc="the key is not encrypted",
        secret=True,
    ),
    _resolved(
        "schema.registry.ssl.truststore.location",
        "Java's name of `schema.registry.ssl.ca.location`; PEM only.",
        parse=registry.pem_location,
        kind="file",
        default_doc="the system's certificates",
        conflicts=("schema.registry.ssl.ca.location", "schema.registry.ssl.truststore.location"),
    ),
    _resolved(
        "schema.registry.ssl.truststore.type",
        "The type of the truststore: PEM. Others are refused.",
        parse=registry.pem_type,
        kind="PEM",
        default_doc="PEM",
    ),
    _resolved(
        "schema.registry.ssl.keystore.location",
        "PEM file with both the client's certificate chain and its private key, in Java's name; PEM only.",
        parse=registry.pem_location,
        kind="file",
        default_doc="no client certificate",
        conflicts=("schema.registry.ssl.certificate.location", "schema.registry.ssl.keystore.location"),
    ),
    _resolved(
        "schema.registry.ssl.keystore.type",
        "The type of the keystore: PEM. Others are refused.",
        parse=registry.pem_type,
        kind="PEM",
        default_doc="PEM",
    ),
    _resolved(
        "schema.registry.ssl.endpoint.identification.algorithm",
        "`https`: the name of the host in the registry's certificate is checked, always.",
        parse=registry.host_check,
        kind="`https`",
        default_doc="`https`",
    ),
    _our(
        "schema.registry.region",
        "The AWS region of a Glue Schema Registry, instead of a URL. The login comes from the machine or the "
        "environment, as for all programs that use AWS.",
        field="registry.region",
        parse=scalars.aws_region,
        kind="region",
        default_doc="the region of the AWS settings, with wire format `glue`",
    ),
    _our(
        "schema.registry.registry.name",
        "The name of a Glue Schema Registry.",
        field="registry.registry_name",
        parse=scalars.text,
        default_doc="`default-registry`",
    ),
    _our(
        "schema.registry.timeout",
        "The maximum time of one request to the registry, with all its attempts. Has the forms of `maxTriggerDelay`.",
        field="registry.timeout_ms",
        parse=registry.timeout_ms,
        kind="time span, e.g. `30s`",
        unit="ms",
    ),
    *(
        _our(f"schema.registry.ssl.{store}.password", _WITHOUT_ONE, status=Status.REFUSED, secret=True)
        for store in ("truststore", "keystore")
    ),
    *(
        _our(f"schema.registry.bearer.auth.{name}", _NO_OAUTH, status=Status.REFUSED, secret=name == "client.secret")
        for name in (
            "issuer.endpoint.url",
            "client.id",
            "client.secret",
            "scope",
            "logical.cluster",
            "identity.pool.id",
        )
    ),
)
