"""TLS: the agent and the readers trust what the AWS CLI trusts, and nothing else."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from agent.web import ERRORS, Web
from tests.patience import PATIENCE
from tests.unit.agent.s3_scripts import module
from troop.measure.s3 import credentials, signing
from troop.measure.s3.addresses import address_of, trust


class Ranges(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(206)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"bytes")

    def log_message(self, *_: object) -> None:
        """Nothing."""


def certificate(folder: Path) -> Path:
    """A file with a key and its own certificate, for 127.0.0.1."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a test")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "certificate.pem"
    path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return certificate(tmp_path)


@pytest.fixture
def url(bundle: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Ranges)
    server.daemon_threads = True
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(bundle)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"https://127.0.0.1:{server.server_address[1]}/a?b"
    server.shutdown()
    server.server_close()


def test_the_agent_trusts_the_clis_bundle(url: str, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(bundle))
    assert Web().ask(url).body == b"bytes"


def test_the_agent_trusts_nobody_else(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    with pytest.raises(ERRORS, match="certificate verify failed"):
        Web().ask(url)


def reads(url: str) -> int:
    ranges = module("ranges")
    store = credentials.CredentialStore(lambda: credentials.Credentials("AKIA", "secret"))
    signer, address = signing.Signer(store.current, "us-west-2"), address_of("data", "us-west-2", url)
    reader = ranges.Reader(address, signer, store, trust(), PATIENCE, PATIENCE)
    try:
        return int(reader.read(reader.request("a", 0, 5), 5))
    finally:
        reader.close()


def test_readers_do_the_same(url: str, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = url.removesuffix("/a?b")
    monkeypatch.setenv("AWS_CA_BUNDLE", str(bundle))
    assert reads(server) == 5
    monkeypatch.delenv("AWS_CA_BUNDLE")
    with pytest.raises(module("ranges").ReadError, match=r"^tls$"):
        reads(server)
