"""Makes tests/golden/stores: key stores of Java's keytool, with keys that are for tests alone.

    python tools/make_key_stores.py

An authority, a client's key with the chain of two certificates, and stores of both in the forms that users have:
keytool's own PKCS12 and JKS, with and without passwords, with two keys, with another password for the key. The password
is `changeit`, as in Java's examples. Needs a JDK, of whose keytool the stores are; run it only to add a store.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "tests" / "golden" / "stores"
PASSWORD, KEY_PASSWORD = "changeit", "other-key-password"
_KEY = ["-keyalg", "EC", "-groupname", "secp256r1", "-validity", "36500"]
_NO_PROTECTION = [f"-J-Dkeystore.pkcs12.{what}Algorithm=NONE" for what in ("mac", "certProtection")]


def keytool(store: Path, command: str, *arguments: str, kind: str = "PKCS12", data: bytes = b"") -> bytes:
    """Run one command of keytool on a store; return what it prints."""
    called = ["keytool", command, "-keystore", str(store), "-storetype", kind, "-storepass", PASSWORD, *arguments]
    return subprocess.run(called, check=True, capture_output=True, input=data).stdout


def copy(source: Path, target: Path, alias: str, *arguments: str, kind: str = "JKS") -> None:
    """Copy one entry of a store into another one."""
    keytool(
        target, "-importkeystore", "-srckeystore", str(source), "-srcstorepass", PASSWORD, "-srcalias", alias,
        "-deststoretype", kind, "-deststorepass", PASSWORD, "-destkeystore", str(target), *arguments, kind=kind,
    )  # fmt: skip


def trust(store: Path, certificate: Path, *arguments: str, kind: str = "PKCS12") -> None:
    """Add a trusted certificate to a store."""
    keytool(store, "-importcert", "-noprompt", "-alias", "authority", "-file", str(certificate), *arguments, kind=kind)


def make(folder: Path) -> None:
    """Make all stores in an empty folder."""
    authority, client, certificate = folder / "authority.p12", folder / "client.p12", folder / "authority.pem"
    named = ["-dname", "CN=Test authority, O=Example", "-ext", "bc:c"]
    keytool(authority, "-genkeypair", "-alias", "authority", *_KEY, *named)
    certificate.write_bytes(keytool(authority, "-exportcert", "-alias", "authority", "-rfc"))
    keytool(client, "-genkeypair", "-alias", "client", *_KEY, "-dname", "CN=alice, OU=Tests, O=Example")
    request = keytool(client, "-certreq", "-alias", "client")
    extensions = ["-ext", "san=dns:client.example,ip:127.0.0.1", "-validity", "36500"]
    signed = keytool(authority, "-gencert", "-alias", "authority", "-rfc", *extensions, data=request)
    keytool(client, "-importcert", "-noprompt", "-alias", "client", data=signed + certificate.read_bytes())
    (folder / "client-certificate.pem").write_bytes(signed)

    trust(folder / "truststore.p12", certificate)
    trust(folder / "truststore-without-password.p12", certificate, *_NO_PROTECTION)
    trust(folder / "truststore.jks", certificate, kind="JKS")
    copy(client, folder / "client.jks", "client")
    copy(client, folder / "client-key-password.jks", "client", "-destkeypass", KEY_PASSWORD)
    trust(folder / "client-key-password.jks", certificate, kind="JKS")
    copy(client, folder / "client.jceks", "client", kind="JCEKS")
    for kind in ("JKS", "PKCS12"):
        several = folder / f"two-keys.{'jks' if kind == 'JKS' else 'p12'}"
        copy(client, several, "client", kind=kind)
        dated = ["-dname", "CN=bob", *_KEY, "-keypass", PASSWORD]
        keytool(several, "-genkeypair", "-alias", "second", *dated, kind=kind)
    authority.unlink()


def main() -> None:
    """Make the stores again."""
    with tempfile.TemporaryDirectory() as made:
        make(Path(made))
        FOLDER.mkdir(parents=True, exist_ok=True)
        for file in sorted(Path(made).iterdir()):
            (FOLDER / file.name).write_bytes(file.read_bytes())
            print(f"{file.name}: {file.stat().st_size} bytes")


if __name__ == "__main__":
    main()
