"""The sidecar's certificate, which is read again where its files change."""

from pathlib import Path

import grpc
import structlog

from allocator.server.config.checks import FILE_BYTES_MAX
from allocator.server.config.sections import ListenSection
from allocator.server.config.tls import find_problem
from allocator.server.system.disk import read_regular

_log = structlog.get_logger()


class Certificates:
    """What TLS is set up with; asked at each handshake."""

    def __init__(self, section: ListenSection) -> None:
        """Read the files. Raises OSError where one of them cannot be read."""
        self._paths = (section.tls_cert, section.tls_key, section.tls_client_ca)
        self._seen = self._marks()
        self._first = self._read()
        self._problem = ""

    def credentials(self) -> grpc.ServerCredentials:
        """Give what a server listens with; it follows the files from then on."""
        return grpc.dynamic_ssl_server_credentials(
            self._first,
            self._newer,  # type: ignore[arg-type]  # None is what gRPC asks for
            require_client_authentication=bool(self._paths[2]),
        )

    def _newer(self) -> "grpc.ServerCertificateConfiguration | None":
        """Read the files where they changed; None: those from before count."""
        try:
            marks = self._marks()
            if marks == self._seen:
                return None
            # While a pair is being replaced its halves do not fit: the next handshake looks again.
            problem = find_problem(*self._paths)
            if problem is None:
                found = self._read()
                self._seen, self._problem = marks, ""
                _log.info("certificates read again", certificate=self._paths[0])
                return found
            text = f"tls_{problem.part} {problem.message}"
        except OSError as error:
            text = str(error)
        if text != self._problem:  # once, not at each handshake
            self._problem = text
            _log.warning("changed certificates cannot be used; those from before count", error=text)
        return None

    def _read(self) -> "grpc.ServerCertificateConfiguration":
        cert, key, ca = self._paths
        authority = read_regular(ca, FILE_BYTES_MAX) if ca else None
        pair = (read_regular(key, FILE_BYTES_MAX), read_regular(cert, FILE_BYTES_MAX))
        return grpc.ssl_server_certificate_configuration([pair], authority)

    def _marks(self) -> list[tuple[int, int, int]]:
        """What shows that a file is another one."""
        status = [Path(path).stat() for path in self._paths if path]
        return [(each.st_ino, each.st_mtime_ns, each.st_size) for each in status]
