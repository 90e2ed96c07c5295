"""Certificates for a sidecar and its masters, made by the program openssl."""

import shutil
import subprocess
from pathlib import Path

import grpc

_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
_LEAF = "basicConstraints=CA:FALSE\nsubjectAltName=IP:127.0.0.1,DNS:localhost\n"
OPENSSL_S = 60.0


class Authority:
    """Signs what a sidecar shows, and what masters show to it.

    certificate, key, ca: the files that the sidecar reads; what `serve_with` puts there is what it
        shows.
    """

    def __init__(self, directory: Path) -> None:
        """Make an authority, a master's certificate, and two of a sidecar: valid, and expired."""
        self._directory = directory
        self.certificate, self.key = directory / "served.pem", directory / "served.key"
        self.ca = directory / "ca.pem"
        (directory / "leaf").write_text(_LEAF, encoding="ascii")
        self._run(
            "req", "-x509", *_NEW_KEY, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=t"
        )
        self._sign("master")
        self._sign("expired", "20200101000000Z", "20200102000000Z")
        self._signed = 0
        self.rotate()

    @staticmethod
    def possible() -> bool:
        """Whether the program is there."""
        return shutil.which("openssl") is not None

    def rotate(self) -> None:
        """Make the sidecar show another certificate, which is valid."""
        self._signed += 1
        name = f"sidecar-{self._signed % 4}"
        self._sign(name)
        self._serve_with(name, name)

    def expire(self) -> None:
        """Make it show one whose time is over."""
        self._serve_with("expired", "expired")

    def half(self) -> None:
        """Put another certificate in place, and not its key: half a rotation."""
        self._sign("half")
        self._serve_with("half", "expired")

    def credentials(self) -> grpc.ChannelCredentials:
        """What a master calls with."""
        files = ("ca.pem", "master.key", "master.pem")
        return grpc.ssl_channel_credentials(*((self._directory / n).read_bytes() for n in files))

    def _serve_with(self, certificate: str, key: str) -> None:
        for target, source in ((self.certificate, f"{certificate}.pem"), (self.key, f"{key}.key")):
            new = target.with_suffix(f"{target.suffix}.new")
            shutil.copy(self._directory / source, new)
            new.replace(target)

    def _sign(self, name: str, begins: str = "", ends: str = "") -> None:
        request = (
            *_NEW_KEY,
            "-keyout",
            f"{name}.key",
            "-out",
            f"{name}.csr",
            "-subj",
            f"/CN={name}",
        )
        self._run("req", *request)
        signing = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "leaf")
        if not ends:
            self._run("x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.pem", *signing)
            return
        # Only `openssl ca` takes dates of every version in use; it wants an index of its own.
        (self._directory / "index").write_text("", encoding="ascii")
        (self._directory / "ca.cnf").write_text(_CA.format(self._directory), encoding="utf-8")
        dates = ("-startdate", begins, "-enddate", ends)
        self._run(
            "ca", "-batch", "-config", "ca.cnf", *dates, "-extfile", "leaf", "-in", f"{name}.csr",
            "-out", f"{name}.pem", "-notext",
        )  # fmt: skip

    def _run(self, *words: str) -> None:
        subprocess.run(  # noqa: S603 - the system's openssl
            ["openssl", *words],  # noqa: S607 - as the path has it
            cwd=self._directory,
            check=True,
            capture_output=True,
            timeout=OPENSSL_S,
        )


_CA = """[ca]
default_ca = here
[here]
database = {0}/index
new_certs_dir = {0}
certificate = {0}/ca.pem
private_key = {0}/ca.key
rand_serial = yes
default_md = sha256
policy = any
[any]
commonName = supplied
"""
