"""Checks of options that bounds cannot express.

Those of single options return the value or raise a `ValueError` that says what would be right.

gRPC ends the process where a key is missing, and says nothing but "invalid" where a file of TLS is
wrong. So certificates and keys are loaded into a context of the standard library first.
"""

import ipaddress
import re
import ssl
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from pydantic_core import PydanticCustomError

from allocator.core import PolicySpec, parse_constraint, parse_quantities, refuse_long
from allocator.near import suggestion
from allocator.server.system.disk import read_regular

if TYPE_CHECKING:
    from cryptography import x509


ANY_NAME = "*"

_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,252}[A-Za-z0-9])?")

FILE_BYTES_MAX = 2**20
"""A larger file is no certificate and no token."""

NOWHERE = "-"
"""As a directory: nothing is kept."""

_HOST_PORT = re.compile(r"(\[[0-9a-fA-F:.%]+\]|[^\[\]:/\s]+):([0-9]{1,5})")


def one_of(text: str, known: Iterable[str]) -> str:
    """The text, if it is one of the known words."""
    words = list(known)
    if text not in words:
        message = f"must be one of {', '.join(map(repr, words))}{suggestion(text, words)}"
        raise ValueError(message)
    return text


def reject_at(key: str | int, message: str) -> NoReturn:
    """Say that one part of a section is wrong, seen together with the others."""
    raise PydanticCustomError("section", "{message}", {"key": key, "message": message})


def non_empty(texts: tuple[str, ...]) -> tuple[str, ...]:
    if not texts:
        raise ValueError("must not be empty")
    return texts


def non_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


def short(text: str) -> str:
    refuse_long(text)
    return text


def role_path(text: str) -> str:
    refuse_long(text)
    if not text or not all(text.split("/")):
        raise ValueError("is not a role; write it as 'eng' or 'eng/ads'")
    return text


def target(text: str) -> str:
    """Check an address that gRPC can listen on."""
    if text.startswith("unix:"):
        path = text.removeprefix("unix:")
        if not path.startswith("/"):
            message = "needs an absolute path after 'unix:', as in 'unix:/run/allocator.sock'"
            raise ValueError(message)
        if len(path.encode()) > 107:  # sockaddr_un has 108, the last of them 0
            message = "is too long; the path of a Unix socket has at most 107 bytes"
            raise ValueError(message)
        return text
    match = _HOST_PORT.fullmatch(text)
    if not match or int(match[2]) > 65535:
        message = "must be host:port with a port of at most 65535, [IPv6]:port, or unix:/path"
        raise ValueError(message)
    return text


def owner(text: str) -> str:
    if text and not re.fullmatch(r"[\w.-]*(:[\w.-]+)?", text):
        message = "must be user:group, :group or user, as in 'root:mesos'"
        raise ValueError(message)
    return text


def is_local(text: str) -> bool:
    """Whether only this machine reaches an address: a Unix socket, or host:port of loopback.

    Examples
    --------
    >>> is_local("127.0.0.1:5056"), is_local("127.elsewhere.org:5056"), is_local("[::1]:5056")
    (True, False, True)
    """
    return text.startswith(("unix:", "unix-abstract:")) or is_loopback(text.rpartition(":")[0])


def is_loopback(host: str) -> bool:
    """Whether a name or an address of a host means this machine, seen from itself."""
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def host_name(text: str) -> str:
    """Check a name of a host, or that any will do."""
    if text != ANY_NAME and not _HOST_NAME.fullmatch(text):
        raise ValueError(
            "must be the name of a host, without port or path, as in 'sidecar.example.org', or '*'"
        )
    return text


def readable_file(text: str) -> str:
    """Check a file that is read at start; empty says that there is none."""
    if text:
        try:
            read_regular(text, FILE_BYTES_MAX)
        except OSError as error:
            message = f"cannot be read ({error.strerror}); name a readable file"
            raise ValueError(message) from None
    return text


def no_directory(text: str) -> str:
    """Check a file that is written: files are renamed to make room for it, directories must not."""
    try:
        is_directory = bool(text) and Path(text).is_dir()
    except OSError as error:  # such as a name that is too long
        raise ValueError(f"cannot be a file ({error.strerror}); name another one") from None
    if is_directory:
        raise ValueError(
            f"is a directory; name a file in it, as in {str(Path(text) / 'journal')!r}"
        )
    return text


def absolute_directory(text: str) -> str:
    """Check a directory that may not be there yet."""
    if text and text != NOWHERE and not text.startswith("/"):
        message = "must be an absolute path, as in '/var/lib/mesos-allocator', or '-' for none"
        raise ValueError(message)
    return text


def plugin_file(text: str) -> str:
    """Load the policies of a file, so that they can be named."""
    from allocator.server.plugins.loading import load_file

    load_file(text)
    return text


def policy_name(text: str) -> str:
    from allocator.policies import POLICIES

    return one_of(text, POLICIES)


def optional_policy_name(text: str) -> str:
    """Check the name of a policy; empty is none."""
    return text and policy_name(text)


def selection_name(text: str) -> str:
    """Check the name of an agent selection; empty is the policy's own."""
    from allocator.policies import SELECTIONS

    return text and one_of(text, SELECTIONS)


def spec_that_builds(spec: PolicySpec, deadline_s: float) -> None:
    from allocator.server.plugins.guarded_policy import GuardedRegistry

    try:
        GuardedRegistry(deadline_s).check(spec)
    except ValueError as error:
        key, _, message = str(error).partition(": ")
        reject_at(key, message)


def non_empty_quantities(text: str) -> str:
    """Check amounts by name of which at least one is positive."""
    if not any(parse_quantities(text).values()):
        message = "names no positive amount; write one task's needs, as in 'cpus:2;mem:2048'"
        raise ValueError(message)
    return text


def constraint_expression(text: str) -> str:
    """Check an expression about agents' attributes."""
    if not parse_constraint(text):
        message = "holds for every agent; write clauses, as in 'zone=a|b; gpu_model!=K80; ssd'"
        raise ValueError(message)
    return text


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
    from cryptography.hazmat.primitives.serialization import Encoding

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(
        cadata=b"".join(each.public_bytes(Encoding.DER) for each in found)
    )
    # Who names itself as its issuer may be believed as it is.
    self_issued = any(each.issuer == each.subject for each in found)
    if not context.cert_store_stats()["x509_ca"] and not self_issued:
        message = "holds no authority's certificate; name that of whoever signed the certificates"
        return TlsProblem("ca", message)
    return None


def _certificates(path: str) -> "list[x509.Certificate]":
    """The certificates of a PEM file; none where one of them cannot be read."""
    from cryptography import x509  # only who uses TLS waits for the library

    try:
        return x509.load_pem_x509_certificates(read_regular(path, FILE_BYTES_MAX))
    except (ValueError, x509.InvalidVersion):
        return []


def expired_at(cert: str) -> str:
    """Say when the first certificate of a PEM file ended to be valid; empty where it has not.

    As ``YYYYMMDDHHMMSSZ``, in UTC.
    """
    ends = _certificates(cert)[0].not_valid_after_utc
    return f"{ends:%Y%m%d%H%M%SZ}" if ends < datetime.now(UTC) else ""
