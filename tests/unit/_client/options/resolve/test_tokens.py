"""Options of tokens: OAUTHBEARER and AWS_MSK_IAM, as users of Java's clients have them."""

from __future__ import annotations

from typing import Any

import pytest

from pyspark_kafka._client.options import (
    CertificateStore,
    MskIamLogin,
    OAuthLogin,
    Secret,
    TlsOptions,
    TokenEndpoint,
    TokenFile,
    TokenFunction,
    TokenRenewal,
    UnsignedToken,
    parse_batch_read_options,
    parse_login,
)
from pyspark_kafka.errors import OptionError

PLANTED = "Pl4nted-S3cret"
JAVA = "org.apache.kafka.common.security.oauthbearer."
MODULE = f"{JAVA}OAuthBearerLoginModule"
URL = "https://idp.example/oauth/token"
BASE = {
    "kafka.bootstrap.servers": "b:9093",
    "subscribe": "t",
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.mechanism": "OAUTHBEARER",
}
IAM = "software.amazon.msk.auth.iam.IAMLoginModule"
CLIENT = {"client.credentials.client.id": "me", "client.credentials.client.secret": PLANTED}


def options(jaas: str | None = None, **oauth: str) -> dict[str, str]:
    raw = {**BASE, **{f"kafka.sasl.oauthbearer.{name}": value for name, value in oauth.items()}}
    return raw if jaas is None else raw | {"kafka.sasl.jaas.config": f"{MODULE} required {jaas};"}


def login(raw: dict[str, str]) -> Any:
    return parse_batch_read_options(raw).connection.login


def refused(raw: dict[str, str]) -> OptionError:
    with pytest.raises(OptionError) as caught:
        parse_batch_read_options(raw)
    assert PLANTED not in str(caught.value)
    return caught.value


def test_confluents_lines_are_a_login() -> None:
    raw = options(
        f"clientId='me' clientSecret='{PLANTED}' scope='kafka' extension_logicalCluster='lkc-1' "
        "extension_identityPoolId='pool-2'",
        **{"token.endpoint.url": URL},
    )
    raw["kafka.sasl.login.callback.handler.class"] = f"{JAVA}secured.OAuthBearerLoginCallbackHandler"
    assert login(raw) == OAuthLogin(
        TokenEndpoint(URL, "me", Secret(PLANTED), "kafka"),
        extensions=(("logicalCluster", "lkc-1"), ("identityPoolId", "pool-2")),
    )
    assert PLANTED not in repr(login(raw))


def test_options_take_precedence_over_the_jaas_configuration() -> None:
    raw = options("clientId=a clientSecret=b scope=c", scope="s", **CLIENT, **{"token.endpoint.url": URL})
    raw |= {
        "kafka.sasl.oauthbearer.header.urlencode": "true",
        "kafka.sasl.oauthbearer.scope.claim.name": "scp",
        "kafka.sasl.oauthbearer.sub.claim.name": "client",
        "kafka.sasl.login.connect.timeout.ms": "1000",
        "kafka.sasl.login.read.timeout.ms": "2000",
        "kafka.sasl.login.retry.backoff.ms": "30",
        "kafka.sasl.login.retry.backoff.max.ms": "4000",
        "kafka.sasl.login.refresh.window.factor": "0.6",
        "kafka.sasl.login.refresh.window.jitter": "0.1",
        "kafka.sasl.login.refresh.min.period.seconds": "10",
        "kafka.sasl.login.refresh.buffer.seconds": "20",
        "kafka.sasl.oauthbearer.jwt.retriever.class": f"{JAVA}ClientCredentialsJwtRetriever",
        "kafka.sasl.oauthbearer.jwt.validator.class": f"{JAVA}ClientJwtValidator",
    }
    endpoint = TokenEndpoint(URL, "me", Secret(PLANTED), "s", True, None, 1000, 2000, 30, 4000)
    assert login(raw) == OAuthLogin(
        endpoint, scope_claim="scp", sub_claim="client", renewal=TokenRenewal(0.6, 0.1, 10, 20)
    )


def test_strimzis_lines_are_a_login() -> None:
    raw = options(
        f'oauth.client.id="me" oauth.client.secret="{PLANTED}" oauth.token.endpoint.uri="{URL}" '
        'oauth.ssl.truststore.location="/ca.pem" oauth.ssl.truststore.type="PEM"'
    )
    raw["kafka.sasl.login.callback.handler.class"] = "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"
    tls = TlsOptions(truststore=CertificateStore("/ca.pem", "PEM"))
    assert login(raw) == OAuthLogin(TokenEndpoint(URL, "me", Secret(PLANTED), tls=tls))


@pytest.mark.parametrize("retriever", [None, "FileJwtRetriever", "DefaultJwtRetriever"])
def test_a_file_url_is_a_file(retriever: str | None) -> None:
    raw = options(**{"token.endpoint.url": "file:///var/run/a%20b.jwt"})
    if retriever:
        raw["kafka.sasl.oauthbearer.jwt.retriever.class"] = JAVA + retriever
    assert login(raw).source == TokenFile("/var/run/a b.jwt")


@pytest.mark.parametrize("name", ["own.tokens:get", "call:own.tokens:get"])
def test_a_function_is_named_by_its_import_path(name: str) -> None:
    assert login(options(**{"token.callable": name})).source == TokenFunction("own.tokens:get")


def test_unsigned_tokens_are_for_tests_and_noted() -> None:
    settings = (
        "unsecuredLoginStringClaim_sub=ann unsecuredLoginNumberClaim_n=5 unsecuredLoginListClaim_scope='|a|b' "
        "unsecuredLoginLifetimeSeconds='60'"
    )
    parsed = parse_batch_read_options(options(settings))
    claims = (("sub", "ann"), ("n", 5.0), ("scope", ("a", "b")))
    assert parsed.connection.login == OAuthLogin(UnsignedToken(claims, 60))
    assert any("are not signed" in note for note in parsed.notes)


def test_a_token_on_an_unencrypted_connection_is_noted_with_a_reference_as_well() -> None:
    raw = options(**{"token.callable": "a:b"}) | {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.jaas.config": "file:/run/jaas",
    }
    assert any("the token crosses the network unencrypted" in note for note in parse_batch_read_options(raw).notes)


def test_a_token_on_an_unencrypted_connection_is_noted() -> None:
    raw = options(**{"token.callable": "a:b"}) | {"kafka.security.protocol": "SASL_PLAINTEXT"}
    notes = parse_batch_read_options(raw).notes
    assert any("the token crosses the network unencrypted" in note for note in notes)


@pytest.mark.parametrize(
    ("raw", "condition", "text"),
    [
        (options(), "OPTION_MISSING", "'kafka.sasl.oauthbearer.token.endpoint.url' must be set with OAUTHBEARER"),
        (options("", **{"token.endpoint.url": URL}), "OPTION_MISSING", "client.credentials.client.id' must be set"),
        (
            options(**{"token.endpoint.url": URL, "client.credentials.client.id": "me"}),
            "OPTION_MISSING",
            "client.credentials.client.secret' must be set with a token endpoint",
        ),
        (
            options(**CLIENT, **{"token.endpoint.url": "http://127.0.0.1/token"}),
            "OPTION_INVALID",
            "must be an https URL: over http",
        ),
        (
            options(**CLIENT, **{"token.endpoint.url": f"https://u:{PLANTED}@idp/token"}),
            "OPTION_INVALID",
            "has a user in it",
        ),
        (options(**CLIENT, **{"token.endpoint.url": "ftp://idp/token"}), "OPTION_INVALID", "must be an https URL with"),
        (options(**CLIENT, **{"token.endpoint.url": "https:///token"}), "OPTION_INVALID", "must be an https URL with"),
        (options(**CLIENT, **{"token.endpoint.url": "https://i:x/"}), "OPTION_INVALID", "is not a URL"),
        (options(**CLIENT, **{"token.endpoint.url": "https://i:99999/"}), "OPTION_INVALID", "is not a URL"),
        (options(**CLIENT, **{"token.endpoint.url": "https://[i/"}), "OPTION_INVALID", "is not a URL"),
        (options(**CLIENT, **{"token.endpoint.url": "https://i/a b"}), "OPTION_INVALID", "has a blank or a control"),
        (options(**{"token.endpoint.url": "file://host/t"}), "OPTION_INVALID", "is not the URL of a file of this"),
        (
            options(**{"token.endpoint.url": URL, "token.callable": "a:b"}),
            "OPTION_INVALID",
            "is one of several sources of tokens",
        ),
        (options(**{"token.callable": "no path"}), "OPTION_INVALID", "must be the import path of a function"),
        (
            options(**{"jwt.retriever.class": f"{JAVA}JwtBearerJwtRetriever"}),
            "OPTION_INVALID",
            "names Java code that does not run here",
        ),
        (
            options(**{"jwt.retriever.class": f"{JAVA}FileJwtRetriever", "token.endpoint.url": URL}),
            "OPTION_INVALID",
            "reads a file, but the URL is not one",
        ),
        (
            options(
                **{"jwt.retriever.class": f"{JAVA}ClientCredentialsJwtRetriever", "token.endpoint.url": "file:///t"}
            ),
            "OPTION_INVALID",
            "asks an endpoint, but the URL is a file",
        ),
        (options("extension_auth=x", **{"token.callable": "a:b"}), "OPTION_INVALID", "an extension_<name> whose name"),
        (options("extension_a='\u00e4'", **{"token.callable": "a:b"}), "OPTION_INVALID", "whose value is empty or not"),
        (options("unsecuredLoginNumberClaim_n=x"), "OPTION_INVALID", "to a number"),
        (options("unsecuredLoginNumberClaim_n=5"), "OPTION_INVALID", "must set unsecuredLoginStringClaim_sub"),
        (
            options("ssl.truststore.location=/x ssl.truststore.type=DER", **CLIENT, **{"token.endpoint.url": URL}),
            "OPTION_INVALID",
            "must set ssl.truststore.type to one of PEM, PKCS12, JKS",
        ),
        (
            options("ssl.truststore.password=Pl4nted-S3cret", **CLIENT, **{"token.endpoint.url": URL}),
            "OPTION_INVALID",
            "sets ssl.truststore.… without ssl.truststore.location",
        ),
        (
            options(
                "ssl.truststore.location=/x ssl.truststore.certificates=y", **CLIENT, **{"token.endpoint.url": URL}
            ),
            "OPTION_INVALID",
            "sets both ssl.truststore.location and ssl.truststore.certificates",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(raw: dict[str, str], condition: str, text: str) -> None:
    error = refused(raw)
    assert text in str(error)
    assert error.condition == condition


@pytest.mark.parametrize("name", ["assertion.file", "assertion.private.key.passphrase"])
def test_assertions_are_refused_with_what_to_do_instead(name: str) -> None:
    error = refused(options(**{name: PLANTED, "token.callable": "a:b"}))
    assert "kafka.sasl.oauthbearer.token.callable" in str(error)


def iam(settings: str = "", **changes: str) -> dict[str, str]:
    return {
        **BASE,
        "kafka.sasl.mechanism": "AWS_MSK_IAM",
        "kafka.sasl.jaas.config": f"{IAM} required {settings};",
        "kafka.sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
        **changes,
    }


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (iam(), MskIamLogin()),
        (iam("awsProfileName='dev' awsDebugCreds=true"), MskIamLogin(profile="dev")),
        (
            iam("awsRoleArn='arn:aws:iam::1:role/r' awsRoleSessionName=s"),
            MskIamLogin(role_arn="arn:aws:iam::1:role/r", role_session_name="s"),
        ),
        (iam(**{"kafka.sasl.msk.iam.region": "eu-central-1"}), MskIamLogin("eu-central-1")),
    ],
)
def test_the_lines_of_amazon_msk_are_a_login(raw: dict[str, str], expected: MskIamLogin) -> None:
    assert login(raw) == expected


def test_amazon_msk_needs_no_jaas_configuration() -> None:
    raw = {name: value for name, value in iam().items() if name != "kafka.sasl.jaas.config"}
    assert login(raw) == MskIamLogin()


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (iam("awsProfileName=a awsRoleArn=b"), "sets both awsProfileName and awsRoleArn"),
        (iam("awsRoleSessionName=a"), "sets awsRoleSessionName without awsRoleArn"),
        (iam("awsRoleExternalId=a"), "has a setting that IAMLoginModule does not have here; it has awsProfileName"),
        (iam(**{"kafka.sasl.msk.iam.region": "Frankfurt"}), "must be a region of AWS"),
        (iam(**{"kafka.sasl.client.callback.handler.class": "my.Handler"}), "names Java code that does not run here"),
        (iam(**{"kafka.sasl.mechanism": "OAUTHBEARER"}), "uses the login module of AWS_MSK_IAM"),
    ],
)
def test_settings_of_amazon_msk_that_do_not_fit_are_refused(raw: dict[str, str], text: str) -> None:
    assert text in str(refused(raw))


def test_a_referred_configuration_is_built_with_the_options_beside_it() -> None:
    beside = {"kafka.sasl.oauthbearer.token.endpoint.url": URL}
    config = f"{MODULE} required clientId=me clientSecret='{PLANTED}';"
    assert parse_login(config, "OAUTHBEARER", beside) == OAuthLogin(TokenEndpoint(URL, "me", Secret(PLANTED)))
    with pytest.raises(ValueError, match=r"leaves a problem: option '.*client\.id' must be set"):
        parse_login(f"{MODULE} required;", "OAUTHBEARER", beside)
