"""A login that fails shows its password nowhere: error, causes, locals of the frames that the error crossed."""

from __future__ import annotations

import traceback

import pytest
from kafka.protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse

from kit.fakes.scripts import Close
from kit.fakes.tcp_cluster import TcpCluster
from pyspark_kafka._client.client.net.handshake import open_connection
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.wire.messages import SaslAuthenticateRequest, SaslHandshakeRequest
from pyspark_kafka._client.options import ConnectionOptions, Login, PlainLogin, ScramLogin, Secret
from pyspark_kafka.errors import ConnectorError

PLANTED = "Pl4nted-S3cret"
LOGINS: list[Login] = [PlainLogin("alice", Secret(PLANTED)), ScramLogin("alice", Secret(PLANTED), "SCRAM-SHA-256")]


def failure(login: Login, *script: object) -> ConnectorError:
    options = ConnectionOptions((("127.0.0.1", 1),), security_protocol="SASL_PLAINTEXT", login=login)
    with TcpCluster() as cluster:
        cluster.script(SaslHandshakeRequest, SaslHandshakeResponse(error_code=0, mechanisms=[login.mechanism]))
        cluster.script(SaslAuthenticateRequest, *script)
        host, port = cluster.address(0)
        with pytest.raises(ConnectorError) as caught:
            open_connection(host, port, options, Deadline(5_000))
    return caught.value


def texts_of(error: BaseException) -> str:
    """Return what is seen of an error and of what it hangs on."""
    return "".join([*traceback.format_exception(error), repr(error), repr(vars(error))])


def locals_of(error: BaseException) -> str:
    """Return the locals of the product's frames that an error and its causes crossed, as tools show them."""
    shown: list[str] = []
    seen: BaseException | None = error
    while seen is not None:
        frames = [frame for frame, _ in traceback.walk_tb(seen.__traceback__)]
        ours = [frame for frame in frames if "pyspark_kafka" in frame.f_code.co_filename]
        shown += [f"{name}={value!r}" for frame in ours for name, value in frame.f_locals.items()]
        seen = seen.__cause__ or seen.__context__
    return "\n".join(shown)


def answer(code: int, message: str | None, auth_bytes: bytes = b"") -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=code, error_message=message, auth_bytes=auth_bytes, session_lifetime_ms=0
    )


@pytest.mark.parametrize(
    ("login", "response"),
    [
        *((login, response) for login in LOGINS for response in (Close, answer(58, "no"))),
        # Of PLAIN, bytes in the response are passed over.
        (LOGINS[1], answer(0, None, b"\xff")),
    ],
)
def test_login_that_fails_does_not_show_its_password(login: Login, response: object) -> None:
    error = failure(login, response)
    assert "auth_bytes=<" in locals_of(error) or response is not Close
    assert PLANTED not in texts_of(error) + locals_of(error)


def test_password_that_the_server_repeats_is_not_shown() -> None:
    error = failure(LOGINS[0], answer(58, f"alice is not {PLANTED}"))
    assert 'The broker said: "alice is not ***"' in str(error)
    assert PLANTED not in texts_of(error)
