"""The combined meaning of token options: OAUTHBEARER and AWS_MSK_IAM logins."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from pyspark_kafka._client.options.parse import scalars
from pyspark_kafka._client.options.values.secret import Secret
from pyspark_kafka._client.options.values.tls import CertificateStore, TlsOptions
from pyspark_kafka._client.options.values.tokens import (
    MskIamLogin,
    OAuthLogin,
    TokenEndpoint,
    TokenFile,
    TokenFunction,
    TokenRenewal,
    UnsignedToken,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark_kafka._client.options.parse.jaas import JaasConfig
    from pyspark_kafka._client.options.values.tokens import TokenSource

_JAAS = "kafka.sasl.jaas.config"
_URL = "kafka.sasl.oauthbearer.token.endpoint.url"
_FUNCTION = "kafka.sasl.oauthbearer.token.callable"
_ID = "kafka.sasl.oauthbearer.client.credentials.client.id"
_SECRET = "kafka.sasl.oauthbearer.client.credentials.client.secret"  # noqa: S105 - a name
_SCOPE = "kafka.sasl.oauthbearer.scope"
_RETRIEVER = "kafka.sasl.oauthbearer.jwt.retriever.class"
_REGION = "kafka.sasl.msk.iam.region"
_CALLBACK = "kafka.sasl.client.callback.handler.class"
_LOGIN_CALLBACK = "kafka.sasl.login.callback.handler.class"

_ENDPOINT_FIELDS = {
    "kafka.sasl.oauthbearer.header.urlencode": "urlencode_header",
    "kafka.sasl.login.connect.timeout.ms": "connect_timeout_ms",
    "kafka.sasl.login.read.timeout.ms": "read_timeout_ms",
    "kafka.sasl.login.retry.backoff.ms": "retry_backoff_ms",
    "kafka.sasl.login.retry.backoff.max.ms": "retry_backoff_max_ms",
}
_RENEWAL_FIELDS = {
    "kafka.sasl.login.refresh.window.factor": "window_factor",
    "kafka.sasl.login.refresh.window.jitter": "window_jitter",
    "kafka.sasl.login.refresh.min.period.seconds": "min_period_s",
    "kafka.sasl.login.refresh.buffer.seconds": "buffer_s",
}
_CLAIM_FIELDS = {
    "kafka.sasl.oauthbearer.scope.claim.name": "scope_claim",
    "kafka.sasl.oauthbearer.sub.claim.name": "sub_claim",
}

TOKEN_MECHANISMS = ("OAUTHBEARER", "AWS_MSK_IAM")
# The options that have a meaning with tokens only, and the mechanisms that have them.
TOKEN_OPTIONS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((_URL, _FUNCTION, _ID, _SECRET, _SCOPE, _RETRIEVER, _LOGIN_CALLBACK), ("OAUTHBEARER",)),
    **dict.fromkeys((*_ENDPOINT_FIELDS, *_CLAIM_FIELDS), ("OAUTHBEARER",)),
    **dict.fromkeys(_RENEWAL_FIELDS, TOKEN_MECHANISMS),
    **dict.fromkeys((_REGION, _CALLBACK), ("AWS_MSK_IAM",)),
}

# Java's OAuthBearerClientInitialResponse.
_EXTENSION_NAME = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE = re.compile(r"[\x21-\x7e \t\r\n]+")
_STORES = ("PEM", "PKCS12", "JKS")
_location = scalars.location()
_CONTROL = re.compile(r"[\x00-\x20\x7f]")


class LoginOptionError(ValueError):
    """Options of a login that do not fit; the text says it as "the configuration …", and repeats no secret.

    Attributes:
        option: the one to change.
        clause: what is wrong with it; follows its name.
        hint: a sentence.
    """

    def __init__(self, option: str, clause: str, hint: str = "") -> None:
        super().__init__(clause if option == _JAAS else f"leaves a problem: option '{option}' {clause}")
        self.option = option
        self.clause = clause
        self.hint = hint


def build_oauth(jaas: JaasConfig, given: Mapping[str, Any]) -> OAuthLogin:
    """Return the login of OAUTHBEARER.

    Args:
        jaas: the login module; without settings if there is no JAAS configuration.
        given: the options that are given, by name.

    Raises:
        LoginOptionError: options are missing or do not fit.

    Source: KIP-255, KIP-768, KIP-1139; Java's `OAuthBearerLoginCallbackHandler`.
    """
    return OAuthLogin(
        source=_source(jaas, given),
        extensions=_extensions(jaas),
        renewal=_renewal(given),
        **{field: given[name] for name, field in _CLAIM_FIELDS.items() if name in given},
    )


def build_msk_iam(jaas: JaasConfig, given: Mapping[str, Any]) -> MskIamLogin:
    """Return the login of Amazon MSK.

    Raises:
        LoginOptionError: settings that do not fit.
    """
    texts = jaas.texts
    if "awsProfileName" in texts and "awsRoleArn" in texts:
        clause = "sets both awsProfileName and awsRoleArn, of which the signer takes one"
        raise LoginOptionError(_JAAS, clause, "Name the role in the profile (role_arn), and set awsProfileName alone.")
    if "awsRoleSessionName" in texts and "awsRoleArn" not in texts:
        raise LoginOptionError(_JAAS, "sets awsRoleSessionName without awsRoleArn", "Set awsRoleArn, or remove it.")
    return MskIamLogin(
        region=given.get(_REGION),
        profile=texts.get("awsProfileName"),
        role_arn=texts.get("awsRoleArn"),
        role_session_name=texts.get("awsRoleSessionName"),
        renewal=_renewal(given),
    )


def token_notes(mechanism: str, protocol: str) -> list[str]:
    """Return what a user should know of a login with a token over this protocol."""
    if protocol != "SASL_PLAINTEXT":
        return []
    note = f"With kafka.security.protocol 'SASL_PLAINTEXT' and kafka.sasl.mechanism '{mechanism}' the token crosses"
    return [f"{note} the network unencrypted."]


def _source(jaas: JaasConfig, given: Mapping[str, Any]) -> TokenSource:
    unsigned = {name: value for name, value in jaas.texts.items() if name.startswith("unsecuredLogin")}
    url = given.get(_URL) or jaas.texts.get("oauth.token.endpoint.uri")
    sources = [name for name, there in ((_FUNCTION, _FUNCTION in given), (_URL, url), (_JAAS, unsigned)) if there]
    if not sources:
        raise LoginOptionError(
            _URL,
            "must be set with OAUTHBEARER: it says where tokens come from",
            f"Set it to the https URL of the token endpoint, or to file:///path of a token; or set {_FUNCTION} to a "
            "function, package.module:function.",
        )
    if len(sources) > 1:
        named = " and ".join(f"'{name}'" for name in sources)
        raise LoginOptionError(sources[0], f"is one of several sources of tokens ({named})", "Remove all but one.")
    if _FUNCTION in given:
        return TokenFunction(given[_FUNCTION])
    if unsigned:
        return _unsigned(unsigned)
    return _of_url(str(url), jaas, given)


def _of_url(url: str, jaas: JaasConfig, given: Mapping[str, Any]) -> TokenSource:
    retriever = given.get(_RETRIEVER)
    parts = check_url(url)
    if parts is None:
        path = unquote(urlsplit(url).path)
        if retriever == "https":
            raise LoginOptionError(
                _RETRIEVER, "asks an endpoint, but the URL is a file", f"Set {_URL} to an https URL."
            )
        return TokenFile(path)
    if retriever == "file":
        raise LoginOptionError(_RETRIEVER, "reads a file, but the URL is not one", f"Set {_URL} to file:///path.")
    client_id = given.get(_ID) or jaas.texts.get("clientId") or jaas.texts.get("oauth.client.id")
    secret = given.get(_SECRET) or jaas.secrets.get("clientSecret") or jaas.secrets.get("oauth.client.secret")
    for name, found in ((_ID, client_id), (_SECRET, secret)):
        if not found:
            raise LoginOptionError(
                name, f"must be set with a token endpoint ('{_URL}')", "Set the client's id and secret."
            )
    assert isinstance(secret, Secret)  # noqa: S101 - for mypy
    return TokenEndpoint(
        url=url,
        client_id=str(client_id),
        client_secret=secret,
        scope=given.get(_SCOPE) or jaas.texts.get("scope") or jaas.texts.get("oauth.scope"),
        tls=_endpoint_tls(jaas),
        **{field: given[name] for name, field in _ENDPOINT_FIELDS.items() if name in given},
    )


def check_url(url: str) -> str | None:
    """Check the URL of a token endpoint.

    Returns:
        The host; None if it is the URL of a file.

    Raises:
        LoginOptionError: it is neither https nor a file's; a secret would be sent unencrypted.
    """
    hint = "Set it to https://host/path, or to file:///path of a token."
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise LoginOptionError(_URL, "is not a URL", hint) from None
    if _CONTROL.search(url):
        raise LoginOptionError(_URL, "has a blank or a control character in it", hint)
    if parts.scheme == "file":
        if host or len(parts.path) < 2 or parts.query or parts.fragment:
            raise LoginOptionError(_URL, "is not the URL of a file of this machine, file:///path", hint)
        return None
    if parts.scheme == "http":
        clause = (
            "must be an https URL: over http, the client's secret and the token would cross the network as they are"
        )
        raise LoginOptionError(_URL, clause, hint)
    if parts.scheme != "https" or not host or port == 0 or parts.fragment:
        raise LoginOptionError(_URL, "must be an https URL with a host, or the URL of a file", hint)
    if "@" in parts.netloc:
        raise LoginOptionError(_URL, "has a user in it", f"Set {_ID} and {_SECRET} instead.")
    return host


def _endpoint_tls(jaas: JaasConfig) -> TlsOptions | None:
    """Return what to trust at the endpoint; as in Java, settings of the JAAS configuration, else the system's."""
    for prefix in ("ssl.truststore", "oauth.ssl.truststore"):
        location, kind = jaas.texts.get(f"{prefix}.location"), jaas.texts.get(f"{prefix}.type")
        password, certificates = jaas.secrets.get(f"{prefix}.password"), jaas.secrets.get(f"{prefix}.certificates")
        if location is None and certificates is None:
            if kind is not None or password is not None:
                raise LoginOptionError(_JAAS, f"sets {prefix}.… without {prefix}.location")
            continue
        if location is not None and certificates is not None:
            raise LoginOptionError(_JAAS, f"sets both {prefix}.location and {prefix}.certificates")
        if kind is not None and kind.upper() not in _STORES:
            raise LoginOptionError(_JAAS, f"must set {prefix}.type to one of {', '.join(_STORES)}")
        if location is not None:
            try:
                location = _location(location)
            except ValueError:
                raise LoginOptionError(_JAAS, f"must set {prefix}.location to the path of a file") from None
        store = CertificateStore(
            location=location, kind=kind and kind.upper(), password=password, certificates=certificates
        )
        return TlsOptions(truststore=store)
    return None


def _unsigned(settings: Mapping[str, str]) -> UnsignedToken:
    claims: list[tuple[str, str | float | tuple[str, ...]]] = []
    readers: tuple[tuple[str, Callable[[str], str | float | tuple[str, ...]]], ...] = (
        ("unsecuredLoginStringClaim_", str),
        ("unsecuredLoginNumberClaim_", float),
        # The first character is the separator.
        ("unsecuredLoginListClaim_", lambda raw: tuple(filter(None, raw[1:].split(raw[:1])))),
    )
    lifetime_s = settings.get("unsecuredLoginLifetimeSeconds", "3600")
    if re.fullmatch("[1-9][0-9]{0,8}", lifetime_s) is None:
        raise LoginOptionError(_JAAS, "must set unsecuredLoginLifetimeSeconds to a whole number of seconds, from 1")
    for name, raw in settings.items():
        for prefix, read in readers:
            if name.startswith(prefix):
                try:
                    claims.append((name.removeprefix(prefix), read(raw)))
                except ValueError:
                    raise LoginOptionError(_JAAS, f"must set {prefix}… to a {prefix[14:20].lower()}") from None
    if "sub" not in dict(claims):
        raise LoginOptionError(_JAAS, "must set unsecuredLoginStringClaim_sub to the user of the token")
    return UnsignedToken(tuple(claims), int(lifetime_s))


def _extensions(jaas: JaasConfig) -> tuple[tuple[str, str], ...]:
    found = []
    for setting, value in jaas.texts.items():
        if not setting.startswith("extension_"):
            continue
        name = setting.removeprefix("extension_")
        if _EXTENSION_NAME.fullmatch(name) is None or name == "auth":
            raise LoginOptionError(_JAAS, "has an extension_<name> whose name is not of letters alone, or is 'auth'")
        if _EXTENSION_VALUE.fullmatch(value) is None:
            raise LoginOptionError(_JAAS, "has an extension_<name> whose value is empty or not printable ASCII")
        found.append((name, value))
    return tuple(found)


def _renewal(given: Mapping[str, Any]) -> TokenRenewal:
    return TokenRenewal(**{field: given[name] for name, field in _RENEWAL_FIELDS.items() if name in given})
