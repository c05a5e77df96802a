"""Certificates for the link between driver, scheduler and workers: an authority of the team, and one certificate.

Dask checks both sides of each connection against the authority, and no names of hosts: whoever has the key takes part.
"""

import os
import stat
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from runner.core.errors import Problem, UsageError, file_problem
from runner.core.files import read_private

FILES = ("ca.pem", "certificate.pem", "key.pem")
"""The authority's certificate, the certificate of all hosts, and its key."""
MAX_KEY_BYTES = 1 << 16
VALID_DAYS = 3 * 365


def make(folder: Path, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
    """Write new certificates to a folder that is made for them, readable for its owner alone.

    The authority's key is not kept: nobody can make a further certificate that these hosts accept.

    Args:
        folder: does not exist, or is empty, belongs to this user, and others may not write to it.
        clock: the time in UTC.

    Raises:
        UsageError: the folder holds files already, is open to others, or cannot be written; then it holds none.
    """
    now = clock()
    authority_key, host_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority_name = _name("matrix-runner authority")
    authority = _certificate(authority_name, authority_name, authority_key, authority_key, now, is_authority=True)
    host = _certificate(_name("matrix-runner"), authority_name, host_key, authority_key, now, is_authority=False)
    key = host_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem = serialization.Encoding.PEM
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageError(Problem(f"{folder} is not empty", hint="name a new folder"))
        _check_private(folder)
        _write(folder, (authority.public_bytes(pem), host.public_bytes(pem), key))
    except OSError as error:
        raise UsageError(file_problem(error, folder)) from error


def _check_private(folder: Path) -> None:
    """Raise UsageError for a folder that others could put their own files into; the files are closed to them."""
    status = folder.stat()
    if status.st_uid != os.geteuid():
        raise UsageError(Problem(f"{folder} belongs to another user", hint="name a new folder"))
    if status.st_mode & 0o022:
        mode = f"{stat.S_IMODE(status.st_mode):04o}"
        raise UsageError(Problem(f"{folder} has mode {mode}: others may write to it", hint=f"`chmod 700 {folder}`"))


def _write(folder: Path, contents: Iterable[bytes]) -> None:
    """Write the files, or none of them: a part of them would pass for certificates."""
    written: list[Path] = []
    try:
        for name, content in zip(FILES, contents, strict=True):
            descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            written.append(folder / name)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content)
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise


def check(folder: Path) -> tuple[Path, ...]:
    """Return the paths of ``FILES`` in a folder that can be used.

    Raises:
        UsageError: one is missing, or the key is not private to this user.
    """
    paths = tuple(folder / name for name in FILES)
    for path in paths:
        if not path.is_file():
            hint = "`runner worker --make-certificates FOLDER` makes them"
            raise UsageError(Problem(f"there is no {path}", hint=hint))
    try:
        read_private(paths[-1], MAX_KEY_BYTES)
    except OSError as error:
        hint = f"whoever has it takes part: `chmod 600 {paths[-1]}` as its owner, or make new certificates"
        raise UsageError(Problem(f"{paths[-1]} cannot be used: {error.strerror or error}", hint=hint)) from error
    return paths


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    signing_key: ec.EllipticCurvePrivateKey,
    now: datetime,
    *,
    is_authority: bool,
) -> x509.Certificate:
    builder = x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now - timedelta(days=1),  # clocks of hosts differ
        not_valid_after=now + timedelta(days=VALID_DAYS),
    )
    constraints = x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None)
    return builder.add_extension(constraints, critical=True).sign(signing_key, hashes.SHA256())
