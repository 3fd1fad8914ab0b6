"""Names of cipher suites: what the options accept, OpenSSL has."""

from __future__ import annotations

import ssl

from pyspark_kafka._client.options.parse import tls


def test_every_suite_that_options_accept_is_one_of_openssl() -> None:
    found = 0
    for exchange in tls._KEY_EXCHANGES:
        for cipher in tls._CIPHERS:
            try:
                older, _ = tls.cipher_suites(f"TLS_{exchange}_WITH_{cipher}")
            except ValueError:
                continue
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.set_ciphers(f"{older[0]}:@SECLEVEL=0")
            names = [each["name"] for each in context.get_ciphers() if not each["name"].startswith("TLS_")]
            assert names == list(older)
            found += 1
    assert found > 20
