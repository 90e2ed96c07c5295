"""Checks certificates and keys before gRPC reads them.

gRPC aborts the process if a key is missing, and only reports "invalid" for any faulty TLS file. So
certificates and keys are first loaded into a context of the standard library.
"""

import ssl
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from allocator.server.system.disk import read_regular

if TYPE_CHECKING:
    from cryptography import x509

FILE_BYTES_MAX = 2**20
"""Maximum size of a file; a larger one is neither a certificate nor a token."""

_PEM = "name a PEM file, with -----BEGIN"
_NO_CERTIFICATE = f"contains no readable certificate; {_PEM} CERTIFICATE-----"


class TlsProblem(NamedTuple):
    """A TLS file that cannot be used."""

    part: str
    """``cert``, ``key`` or ``ca``."""
    message: str


def find_problem(cert: str, key: str, ca: str) -> TlsProblem | None:
    """Return the problem of readable PEM files, if any. An empty path means no file.

    `cert`: the certificate, followed by those of the intermediate authorities.
    `ca`: the trusted authorities.

    Raises OSError if one of them cannot be read, or is not a regular file.
    """
    if cert and not key:
        return TlsProblem("key", "is missing while tls_cert is given; give both, or neither")
    if key and not cert:
        return TlsProblem("cert", "is missing while tls_key is given; give both, or neither")
    problem = _problem_of_pair(cert, key) if cert else None
    return problem or (_problem_of_authorities(ca) if ca else None)


def _problem_of_pair(cert: str, key: str) -> TlsProblem | None:
    if not _certificates(cert):
        return TlsProblem("cert", _NO_CERTIFICATE)
    read_regular(key, FILE_BYTES_MAX)  # `load_cert_chain` would wait for a FIFO
    asked = []

    def password() -> str:
        asked.append(True)
        return ""

    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_ciphers("ALL:@SECLEVEL=0")  # gRPC decides whether a key is long enough
        context.load_cert_chain(cert, key, password)
    except ssl.SSLError as error:
        if asked:
            return TlsProblem("key", "is encrypted; store it unencrypted, readable only by us")
        if error.reason == "KEY_VALUES_MISMATCH":
            return TlsProblem("key", "is not the certificate's; name the one it was made with")
        return TlsProblem("key", f"contains no private key; {_PEM} PRIVATE KEY-----")
    return None


def _problem_of_authorities(ca: str) -> TlsProblem | None:
    found = _certificates(ca)
    if not found:
        return TlsProblem("ca", _NO_CERTIFICATE)
    from cryptography.hazmat.primitives.serialization import Encoding

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(
        cadata=b"".join(each.public_bytes(Encoding.DER) for each in found)
    )
    # A self-issued certificate may be trusted, even if it is not an authority's.
    self_issued = any(each.issuer == each.subject for each in found)
    if not context.cert_store_stats()["x509_ca"] and not self_issued:
        message = "contains no authority's certificate; name that of the signing authority"
        return TlsProblem("ca", message)
    return None


def _certificates(path: str) -> "list[x509.Certificate]":
    """Return the certificates of a PEM file; empty if one of them cannot be read."""
    from cryptography import x509  # slow to import, and only needed with TLS

    try:
        return x509.load_pem_x509_certificates(read_regular(path, FILE_BYTES_MAX))
    except (ValueError, x509.InvalidVersion):
        return []


def expired_at(cert: str) -> str:
    """When the first certificate of a PEM file expired, as ``YYYYMMDDHHMMSSZ`` in UTC, or empty."""
    ends = _certificates(cert)[0].not_valid_after_utc
    return f"{ends:%Y%m%d%H%M%SZ}" if ends < datetime.now(UTC) else ""
