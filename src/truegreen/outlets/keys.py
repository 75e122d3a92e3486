"""The key that receipts are signed with: made on first use, for its owner's eyes only.

It lies in the state directory, which no agent in a jail can see. A new key takes the place of the
old one at once; of the old one only the public half is kept, so that its receipts can be checked.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from truegreen.errors import InvalidInput, Unavailable, unwritable
from truegreen.outlets.whole import OURS_ALONE, keep_names, write_whole
from truegreen.tuples import NamedTuple

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

_OTHERS = 0o077
_PEM_BYTES = 16 * 1024


class PublicKey(NamedTuple):
    """Who checks a signature needs no more than this."""

    keyid: str
    key: Ed25519PublicKey

    def verified(self, signature: bytes, data: bytes) -> bool:
        """Whether the owner of the key signed the data."""
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - loads slowly

        try:
            self.key.verify(signature, data)
        except InvalidSignature:
            return False
        return True

    def pem(self) -> bytes:
        """As everybody's tools read it."""
        from cryptography.hazmat.primitives import serialization as form  # noqa: PLC0415 - as above

        return self.key.public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)


class SigningKey(NamedTuple):
    """The key itself. It is never shown."""

    public: PublicKey
    key: Ed25519PrivateKey

    @property
    def keyid(self) -> str:
        """The digest of the public half."""
        return self.public.keyid

    def sign(self, data: bytes) -> bytes:
        """A signature over the data."""
        return self.key.sign(data)


class Fault(NamedTuple):
    """What is wrong with how a key is kept, and the command that mends it."""

    message: str
    next: str


def read_public(pem: bytes, source: str) -> PublicKey:
    """An Ed25519 public key from PEM; anything else is refused."""
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - as above
    from cryptography.hazmat.primitives import serialization as form  # noqa: PLC0415 - as above
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415 - as above
        Ed25519PublicKey,
    )

    try:
        key = form.load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidInput(f"{source} holds no public key in PEM", path=source) from None
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidInput(f"{source} holds a key of another kind than Ed25519", path=source)
    return _named(key)


def _named(key: Ed25519PublicKey) -> PublicKey:
    """A key's id is the SHA-256 of its DER form: `openssl pkey -pubin -outform DER | sha256sum`."""
    from cryptography.hazmat.primitives import serialization as form  # noqa: PLC0415 - as above

    der = key.public_bytes(form.Encoding.DER, form.PublicFormat.SubjectPublicKeyInfo)
    return PublicKey(hashlib.sha256(der).hexdigest(), key)


class Keyring:
    """The keys of one state directory."""

    def __init__(self, state_dir: str) -> None:
        self.folder = os.path.join(state_dir, "keys")
        self.private = os.path.join(self.folder, "receipts.pem")
        self.public = os.path.join(self.folder, "public")

    def signing(self) -> SigningKey:
        """The key in force; the first who asks makes it."""
        return self._kept() or self._first()

    def _first(self) -> SigningKey:
        with self._alone():
            return self._kept() or self._make()

    def rotate(self) -> tuple[SigningKey | None, SigningKey]:
        """Put a new key in force and destroy the old one; says both."""
        with self._alone():
            old = self._kept()
            if old is None:
                return None, self._make()
            handle = os.open(self.private, os.O_WRONLY | os.O_NOFOLLOW)
            try:
                self._keep_public(old.public)
                new = self._make()
                # Only now: a crash before leaves the old key in force, one after it no name for it.
                os.pwrite(handle, bytes(os.fstat(handle).st_size), 0)
                os.fsync(handle)
            finally:
                os.close(handle)
        return old, new

    def trusted(self) -> dict[str, PublicKey]:
        """The public half of every key that was ever in force here; nothing is made."""
        self._check()
        kept = self._kept()
        found = [kept.public] if kept else []
        for name in self._public_names():
            path = os.path.join(self.public, name)
            found.append(read_public(_read(path), path))
        return {key.keyid: key for key in found}

    def faults(self) -> list[Fault]:
        """What is wrong with how the key is kept; nothing where there is none yet."""
        if not os.path.lexists(self.folder):
            return []
        found = [_fault(self.folder, folder=True)]
        if os.path.lexists(self.private):
            found.append(_fault(self.private, folder=False))
        return [fault for fault in found if fault]

    def _check(self) -> None:
        for fault in self.faults():
            raise Unavailable(f"{fault.message}; {fault.next}", allowed=(fault.next,))

    # -- what lies in the folder ----------------------------------------------------------------

    def _public_names(self) -> list[str]:
        if not os.path.isdir(self.public):
            return []
        return sorted(name for name in os.listdir(self.public) if name.endswith(".pem"))

    def _kept(self) -> SigningKey | None:
        """The key that is there; one that others could have read or put there is refused."""
        self._check()
        if not os.path.lexists(self.private):
            return None
        from cryptography.hazmat.primitives import serialization as form  # noqa: PLC0415 - slow
        from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415 - slow
            Ed25519PrivateKey,
        )

        try:
            key = form.load_pem_private_key(_read(self.private), password=None)
        except (ValueError, TypeError):
            raise Unavailable(f"{self.private} holds no key; move it away") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise Unavailable(f"{self.private} holds a key of another kind; move it away")
        return SigningKey(_named(key.public_key()), key)

    def _make(self) -> SigningKey:
        """A new key in force. Its public half is kept first: no receipt may outlive its check."""
        from cryptography.hazmat.primitives import serialization as form  # noqa: PLC0415 - slow
        from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415 - slow
            Ed25519PrivateKey,
        )

        key = Ed25519PrivateKey.generate()
        made = SigningKey(_named(key.public_key()), key)
        self._keep_public(made.public)
        text = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
        with _written(self.private):
            write_whole(self.private, text, mode=OURS_ALONE, replace=True)
        return made

    def _keep_public(self, key: PublicKey) -> None:
        path = os.path.join(self.public, f"{key.keyid}.pem")
        with _written(path):
            os.makedirs(self.public, mode=0o700, exist_ok=True)
            write_whole(path, key.pem(), mode=OURS_ALONE, replace=True)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One maker at a time; the kernel lets go of a dead one's lock."""
        with _written(self.folder):
            for folder in (os.path.dirname(self.folder), self.folder):
                os.makedirs(folder, mode=0o700, exist_ok=True)
            keep_names(os.path.dirname(self.folder))
        self._check()
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with _written(self.folder):
            handle = os.open(os.path.join(self.folder, "lock"), flags, OURS_ALONE)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def _fault(path: str, *, folder: bool) -> Fault | None:
    status = os.lstat(path)
    right = stat.S_ISDIR(status.st_mode) if folder else stat.S_ISREG(status.st_mode)
    if not right or status.st_uid != os.geteuid():
        what = "folder" if folder else "file"
        return Fault(f"{path} is not a {what} of ours", f"mv {path} {path}.foreign")
    if status.st_mode & _OTHERS:
        mode = f"{stat.S_IMODE(status.st_mode):04o}"
        return Fault(
            f"{path} has mode {mode}: others can get at the receipt key",
            f"chmod {'700' if folder else '600'} {path}; then truegreen receipt key --rotate",
        )
    return None


def _read(path: str) -> bytes:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            return file.read(_PEM_BYTES)
    except OSError as error:
        raise Unavailable(f"{path} can't be read: {error.strerror}") from error


@contextmanager
def _written(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise unwritable(f"{path} can't be written: {error.strerror}", error) from error
