"""DSSE: a payload, its type, and signatures over both. It knows no receipt and no place of keys.

The payload, its type and the signatures are verified, not the bytes of the file: other tools write
the same envelope with other blanks, another order of keys, or no line end. What two readers could
read in two ways (a key twice, base64 that is not canonical) is refused.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from truegreen.work.documents import NotJson, read_document

LARGEST = 16 * 1024 * 1024
"""Bytes of an envelope; more are neither written nor read."""


class Signer(Protocol):
    """Whoever can sign."""

    @property
    def keyid(self) -> str:
        """The digest of the public key."""

    def sign(self, data: bytes) -> bytes:
        """A signature over the data."""


class Verifier(Protocol):
    """A public key; the mapping that it comes in says its id, which is computed from the key."""

    def verified(self, signature: bytes, data: bytes) -> bool:
        """Whether the owner of the key signed the data."""


class Signature(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One signature, in base64."""

    keyid: str
    sig: str


class Envelope(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file as it is written."""

    payload: str
    payload_type: str = msgspec.field(name="payloadType")
    signatures: tuple[Signature, ...]


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """What an envelope held; without faults, all of it was signed by keys that are trusted."""

    payload: bytes = b""
    signers: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


def pre_authentication(payload_type: str, payload: bytes) -> bytes:
    """What is signed: type and payload, each with its length, so that neither can pose as other."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def canonical(value: object) -> bytes:
    """The one way that we write JSON: sorted keys, no blanks, no line end."""
    return msgspec.json.encode(value, order="sorted")


def sealed(payload: bytes, payload_type: str, signers: Sequence[Signer]) -> bytes:
    """The signed envelope, as one line."""
    signed = pre_authentication(payload_type, payload)
    signatures = tuple(
        Signature(keyid=signer.keyid, sig=b64encode(signer.sign(signed)).decode())
        for signer in signers
    )
    text = b64encode(payload).decode()
    made = Envelope(payload=text, payload_type=payload_type, signatures=signatures)
    return canonical(made) + b"\n"


def opened(data: bytes, payload_type: str, trusted: Mapping[str, Verifier]) -> Opened:
    """Read an envelope, believing nothing in it that a trusted key has not signed."""
    envelope = _read(data, payload_type)
    if isinstance(envelope, str):
        return Opened(faults=(envelope,))
    payload = _bytes_of(envelope.payload)
    if payload is None:
        return Opened(faults=("its payload is no canonical base64",))
    faults = _faults(envelope, pre_authentication(payload_type, payload), trusted)
    if faults:
        return Opened(faults=faults)
    return Opened(payload=payload, signers=tuple(each.keyid for each in envelope.signatures))


def _read(data: bytes, payload_type: str) -> Envelope | str:
    """The envelope, or what is wrong with how it is written."""
    if len(data) > LARGEST:
        return f"it has more than {LARGEST} bytes"
    try:
        envelope = msgspec.convert(read_document(data), type=Envelope)
    except (NotJson, msgspec.MsgspecError) as error:
        return f"it is no DSSE envelope: {error}"
    if envelope.payload_type != payload_type:
        return f"its payload type is {envelope.payload_type[:100]!a}, not {payload_type!r}"
    return envelope


def _faults(envelope: Envelope, signed: bytes, trusted: Mapping[str, Verifier]) -> tuple[str, ...]:
    """What is wrong with the signatures. One good one does not make up for another that is not."""
    if not envelope.signatures:
        return ("nobody signed it",)
    faults, seen = [], set()
    for number, signature in enumerate(envelope.signatures, 1):
        name = f"signature {number} (key {ascii(signature.keyid[:80])[1:-1]})"
        if signature.keyid in seen:
            faults.append(f"{name} is by the same key as one before it")
        seen.add(signature.keyid)
        fault = _fault(signature, signed, trusted)
        if fault:
            faults.append(f"{name} {fault}")
    return tuple(faults)


def _fault(signature: Signature, signed: bytes, trusted: Mapping[str, Verifier]) -> str:
    key = trusted.get(signature.keyid)
    if key is None:
        return "is by a key that is not trusted here"
    sig = _bytes_of(signature.sig)
    if sig is None:
        return "is no canonical base64"
    return "" if key.verified(sig, signed) else "is wrong: the receipt was changed, or not signed"


def _bytes_of(text: str) -> bytes | None:
    """The bytes behind base64; None for any text that is not exactly how they are written."""
    try:
        data = b64decode(text)
    except (binascii.Error, ValueError):
        return None
    return data if b64encode(data).decode() == text else None
