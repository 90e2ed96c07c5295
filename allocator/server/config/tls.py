"""What is wrong with the files that TLS is set up with, found before gRPC gets them.

gRPC ends the process where a key is missing, and says nothing but "invalid" where a file is
wrong. So certificates and keys are loaded into a context of the standard library first.
"""

import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from allocator.server.config.checks import FILE_BYTES_MAX
from allocator.server.system.disk import read_regular

_ISSUER, _VALIDITY, _SUBJECT = 2, 3, 4
"""Places in a certificate's body: serial number, algorithm, issuer, validity, subject, ..."""

_PEM = "name a PEM file, with -----BEGIN"
_NO_CERTIFICATE = f"holds no certificate that can be read; {_PEM} CERTIFICATE-----"


class TlsProblem(NamedTuple):
    """A TLS file that cannot be used."""

    part: str
    """``cert``, ``key`` or ``ca``."""
    message: str
    """What is wrong, and the mend."""


def find_problem(cert: str, key: str, ca: str) -> TlsProblem | None:
    """Say what is wrong with PEM files that can be read; an empty path is none.

    `cert` has the certificate, and behind it those of the authorities between it and the root;
    `ca` the authorities that are believed.

    Raises OSError where one of them cannot be read, or is no regular file.
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
    read_regular(key, FILE_BYTES_MAX)  # the library below would wait for a FIFO
    asked = []

    def password() -> str:
        asked.append(True)
        return ""

    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_ciphers("ALL:@SECLEVEL=0")  # whether a key is long enough, gRPC judges
        context.load_cert_chain(cert, key, password)
    except ssl.SSLError as error:
        if asked:
            return TlsProblem("key", "is encrypted; store it without a password, for us alone")
        if error.reason == "KEY_VALUES_MISMATCH":
            return TlsProblem("key", "is not the certificate's; name the one it was made with")
        return TlsProblem("key", f"holds no private key; {_PEM} PRIVATE KEY-----")
    return None


def _problem_of_authorities(ca: str) -> TlsProblem | None:
    found = _certificates(ca)
    if not found:
        return TlsProblem("ca", _NO_CERTIFICATE)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=b"".join(found))
    if not context.cert_store_stats()["x509_ca"] and not any(map(_is_self_issued, found)):
        message = "holds no authority's certificate; name that of whoever signed the certificates"
        return TlsProblem("ca", message)
    return None


def _certificates(path: str) -> list[bytes]:
    """The certificates of a PEM file, in DER; none where one of them cannot be read."""
    text = read_regular(path, FILE_BYTES_MAX).decode("latin-1")
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    found = []
    for part in text.split(begin)[1:]:
        body, mark, _ = part.partition(end)
        try:
            der = ssl.PEM_cert_to_DER_cert(f"{begin}{body}{mark}")
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=der)
        except (ssl.SSLError, ValueError):
            return []
        found.append(der)
    return found


def expired_at(cert: str) -> str:
    """Say when the first certificate of a PEM file ended to be valid; empty where it has not.

    As ``YYYYMMDDHHMMSSZ``, in UTC.
    """
    validity = _parts(_certificates(cert)[0])[_VALIDITY]
    (_, _), (_, last) = _elements(validity)
    ends = last.decode("ascii")
    if len(ends) == len("YYMMDDHHMMSSZ"):  # RFC 5280, sec. 4.1.2.5.1
        ends = ("19" if ends >= "5" else "20") + ends
    return ends if ends < f"{datetime.now(UTC):%Y%m%d%H%M%SZ}" else ""


def _is_self_issued(der: bytes) -> bool:
    """Whether a certificate names itself as its issuer: it may be believed as it is."""
    parts = _parts(der)
    return parts[_ISSUER] == parts[_SUBJECT]


def _parts(der: bytes) -> list[bytes]:
    """Give what a certificate's body consists of, without the version."""
    _, certificate = next(_elements(der))
    _, body = next(_elements(certificate))
    return [value for tag, value in _elements(body) if tag != 0xA0]


def _elements(der: bytes) -> Iterator[tuple[int, bytes]]:
    """Tags and contents of the elements that stand one after the other."""
    at = 0
    while at < len(der):
        tag, size, at = der[at], der[at + 1], at + 2
        if size >= 0x80:  # the length in so many bytes
            more = size - 0x80
            size, at = int.from_bytes(der[at : at + more], "big"), at + more
        yield tag, der[at : at + size]
        at += size
