"""TLS: a listener's certificate, and who a client proves to be by its own."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import trio

from hushcast_gateway.sections.listen_section import ListenSection
from hushcast_protocol.base.errors import UsageError, unreadable

MAX_PEM = 1 << 20  # bytes of a file of certificates


def server_context(listen: ListenSection) -> ssl.SSLContext:
    """Return what a listener of kind `tls` or `wss` greets with: TLS 1.2 and 1.3, nothing older.

    Raises `UsageError` that names the key whose file cannot be used.
    """
    assert listen.certificate is not None
    assert listen.key is not None
    _read("certificate", listen.certificate)
    if b"ENCRYPTED" in _read("key", listen.key):
        raise UsageError(
            f"key: {listen.key} is locked by a password, which a service cannot type: "
            "`openssl pkey -in … -out …` makes one without"
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    try:
        # An empty password: otherwise OpenSSL asks for one at the terminal, and waits.
        context.load_cert_chain(listen.certificate, listen.key, password="")
    except (ssl.SSLError, OSError, ValueError) as error:
        raise UsageError(_why(error, listen.certificate, listen.key)) from None
    if listen.client_ca is not None:
        _read("client_ca", listen.client_ca)
        try:
            context.load_verify_locations(cafile=listen.client_ca)
        except (ssl.SSLError, OSError, ValueError):
            raise UsageError(f"client_ca: {listen.client_ca} holds no certificates (PEM)") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _why(error: Exception, certificate: str, key: str) -> str:
    if getattr(error, "reason", None) == "KEY_VALUES_MISMATCH":
        return f"key: {key} belongs to another certificate than {certificate}"
    return f"certificate: {certificate} and {key} are not a certificate and its key (PEM)"


def _read(key: str, path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_PEM + 1)
    except OSError as error:
        raise unreadable(f"{key}: {path}", error) from None
    if len(data) > MAX_PEM:
        raise UsageError(f"{key}: {path} has over {MAX_PEM} bytes: it is not a PEM file")
    return data


def common_name(stream: trio.SSLStream[Any]) -> str | None:
    """Return the common name of the certificate that a client proved to own, `None` without exactly one."""
    certificate: dict[str, Any] = stream.getpeercert() or {}
    names = [
        value for names in certificate.get("subject", ()) for kind, value in names if kind == "commonName"
    ]
    return names[0] if len(names) == 1 else None


def days_left(listen: ListenSection, now: float) -> float:
    """Return the days for which a listener's certificate will hold; raises `UsageError` if it does not.

    A client and a server shake hands in memory, and the client says what it thinks of the certificate.
    """
    context = server_context(listen)
    context.verify_mode = ssl.CERT_NONE
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client.load_verify_locations(cafile=listen.certificate)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server),
        context.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(4):  # flights; TLS 1.3 takes three
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLCertVerificationError as error:
                raise UsageError(f"certificate: {listen.certificate}: {error.verify_message}") from None
    certificate: dict[str, Any] = ends[0].getpeercert() or {}
    return (ssl.cert_time_to_seconds(certificate["notAfter"]) - now) / 86_400
