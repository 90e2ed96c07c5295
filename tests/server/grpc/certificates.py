"""A certificate authority for tests, and certificates that it signs."""

import subprocess
from pathlib import Path

NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


class Authority:
    """In its directory are ca.key and ca.pem, and NAME.key and NAME.pem of each certificate."""

    def __init__(self, program: str, directory: Path) -> None:
        self._program, self._directory = program, directory
        self.openssl(
            "req", "-x509", *NEW_KEY, "-subj", "/CN=ca", "-keyout", "ca.key", "-out", "ca.pem"
        )

    def openssl(self, *words: str) -> None:
        """Run a command of openssl in the directory."""
        command = [self._program, *words]
        subprocess.run(command, cwd=self._directory, check=True, capture_output=True, timeout=60)

    def sign(
        self,
        name: str,
        extensions: str = "subjectAltName=IP:127.0.0.1,DNS:localhost",
        days: int = 2,
    ) -> None:
        """Make a key and its certificate, which has expired if `days` is negative."""
        request = ["-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}"]
        self.openssl("req", *NEW_KEY, *request)
        (self._directory / "extensions").write_text(f"{extensions}\n")
        signing = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", str(days)]
        more = ["-extfile", "extensions", "-in", f"{name}.csr", "-out", f"{name}.pem"]
        self.openssl("x509", "-req", *signing, *more)
