"""Tokens for Amazon MSK: a signed URL, from AWS's own signer with the machine's AWS credentials.

Brokers of MSK take it with OAUTHBEARER, as they take the messages of Java's AWS_MSK_IAM: the mechanism of AWS's clients
that are not in Java. The signer is an optional package.
"""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING, Any

from pyspark_kafka._client.client.login.mechanism import shown
from pyspark_kafka._client.client.login.tokens.token import Token
from pyspark_kafka._client.options import Secret, check_reference
from pyspark_kafka.errors import MissingDependencyError, OptionError
from pyspark_kafka.version import install_command

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka._client.options import MskIamLogin

# b-1.name.a1b2c3.c2.kafka.us-east-1.amazonaws.com, boot-x.c1.kafka-serverless.eu-west-1.amazonaws.com
_HOST = re.compile(r".+\.kafka(?:-serverless)?\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?:\.cn)?\.?")
_SESSION = "pyspark-kafka"


def region_of(login: MskIamLogin, host: str) -> str:
    """Return the region of a cluster: from the option, the broker's name, or the environment.

    Raises:
        OptionError: there is none.
    """
    found = _HOST.fullmatch(host.lower())
    region = (
        login.region
        or (found["region"] if found else None)
        or os.environ.get("AWS_REGION")
        or os.environ.get("AWS_DEFAULT_REGION")
    )
    if region:
        return region
    raise OptionError(
        f"The region of AWS of the cluster is not known: the broker's name, {shown(host)}, is not one of Amazon MSK, "
        "and AWS_REGION is not set here. No connection was made.",
        condition="OPTION_MISSING",
        hint="Set kafka.sasl.msk.iam.region, such as eu-central-1.",
        parameters={"option": "kafka.sasl.msk.iam.region", "host": host},
    )


def sign_token(login: MskIamLogin, region: str, clock: Callable[[], float] = time.time) -> Token:
    """Return a new token, which counts for 15 minutes.

    Runs on: driver and executor. Blocks while AWS's library looks for credentials; credentials of an instance or a
    role come over the network. The library's own timeouts apply.

    Raises:
        MissingDependencyError: the signer is not installed.
        OptionError: there are no credentials, or the profile or role cannot be used (`TOKEN_UNAVAILABLE`); or the
            administrator of this process does not allow its identity (`REFERENCE_NOT_ALLOWED`).
    """
    check_reference("identity", "aws", "kafka.sasl.mechanism")
    try:
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise MissingDependencyError(
            "SASL mechanism AWS_MSK_IAM needs the Python package 'aws-msk-iam-sasl-signer-python', which cannot be "
            "imported.",
            condition="MISSING_DEPENDENCY",
            hint=f"Run {install_command('msk')} on the driver and on the executors.",
            parameters={"package": "aws-msk-iam-sasl-signer-python"},
        ) from error
    now = clock()
    try:
        value, expires_ms = _signed(MSKAuthTokenProvider, login, region)
    except Exception as error:
        # The signer meets no credentials as an attribute of None. Texts of botocore name profiles and roles, not keys.
        nothing = isinstance(error, AttributeError)
        reason = "no credentials were found" if nothing else f"{type(error).__name__}: {shown(str(error))}"
        raise OptionError(
            f"A token for Amazon MSK in {region} cannot be signed{_whose(login)}: {reason}. No connection was made.",
            condition="TOKEN_UNAVAILABLE",
            hint="Provide credentials of AWS to the driver and every executor: a role of the instance or of the "
            "service account, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; aws sts get-caller-identity shows them.",
            parameters={"region": region},
        ) from error
    return Token(Secret(value), now, expires_ms / 1000)


def _signed(signer: Any, login: MskIamLogin, region: str) -> tuple[str, float]:
    if login.role_arn is not None:
        name = login.role_session_name or _SESSION
        value, expires_ms = signer.generate_auth_token_from_role_arn(region, login.role_arn, name)
    elif login.profile is not None:
        value, expires_ms = signer.generate_auth_token_from_profile(region, login.profile)
    else:
        value, expires_ms = signer.generate_auth_token(region)
    return str(value), float(expires_ms)


def _whose(login: MskIamLogin) -> str:
    if login.role_arn is not None:
        return f" for role '{login.role_arn}'"
    return f" for profile '{login.profile}'" if login.profile is not None else ""
