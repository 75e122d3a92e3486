"""DSSE: nothing is read but what was written, and nothing believed but what was signed."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from securesystemslib.dsse import Envelope as TheirEnvelope
from securesystemslib.signer._crypto_signer import CryptoSigner
from securesystemslib.signer._key import SSlibKey

from tests.table import each_row
from truegreen.outlets.envelope import LARGEST, Opened, opened, pre_authentication, sealed
from truegreen.outlets.keys import SigningKey, _named

KIND = "application/vnd.in-toto+json"
PAYLOAD = '{"it":"is","n":1,"ö":"é"}'.encode()


def new_key() -> SigningKey:
    key = Ed25519PrivateKey.generate()
    return SigningKey(_named(key.public_key()), key)


KEY, OTHER = new_key(), new_key()
TRUSTED = {KEY.keyid: KEY.public}
WHOLE = sealed(PAYLOAD, KIND, [KEY])


def look(data: bytes) -> Opened:
    return opened(data, KIND, TRUSTED)


def refused(data: bytes) -> str:
    """What is wrong with an envelope; nothing of it is given out."""
    found = look(data)
    assert found.payload == b""
    assert found.signers == ()
    assert found.faults
    return "; ".join(found.faults)


def rewritten(change: Callable[[dict[str, object]], None], *, sort: bool = True) -> bytes:
    """The envelope with something changed in it, written as we write."""
    envelope = json.loads(WHOLE)
    change(envelope)
    return json.dumps(envelope, separators=(",", ":"), sort_keys=sort).encode() + b"\n"


def test_what_is_signed_is_encoded_as_the_specification_says():
    encoded = pre_authentication("http://example.com/HelloWorld", b"hello world")
    assert encoded == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"


def test_a_signed_payload_comes_out_as_it_went_in():
    assert look(WHOLE) == Opened(payload=PAYLOAD, signers=(KEY.keyid,))
    assert sealed(PAYLOAD, KIND, [KEY]) == WHOLE


def test_every_flipped_bit_is_found():
    for place in range(len(WHOLE)):
        for bit in range(8):
            flipped = bytearray(WHOLE)
            flipped[place] ^= 1 << bit
            assert look(bytes(flipped)).faults, (place, bit)


def test_every_cut_and_every_addition_is_found():
    for end in range(len(WHOLE.rstrip())):
        assert look(WHOLE[:end]).faults, end
    for more in (b"\0", b"{}", b",", WHOLE):
        assert look(WHOLE + more).faults, more
        assert look(more + WHOLE).faults, more


def test_an_envelope_that_another_tool_wrote_again_is_the_same():
    written = json.loads(WHOLE)
    for data in (
        WHOLE.rstrip(b"\n"),
        WHOLE.replace(b"\n", b"\r\n"),
        b"\n " + WHOLE + b"\n",
        json.dumps(written, indent=2).encode(),
        json.dumps(dict(reversed(written.items()))).encode(),
    ):
        assert look(data) == look(WHOLE), data
    assert look(WHOLE).payload == PAYLOAD


def test_a_key_that_is_there_twice_is_refused():
    twice = WHOLE.replace(b'"payloadType"', b'"payloadType":"text/plain","payloadType"')
    assert json.loads(twice) == json.loads(WHOLE)
    assert "payloadType" in refused(twice)


def test_an_unknown_key_is_refused():
    assert "unknown field" in refused(rewritten(lambda e: e.update(note="hello")))
    assert "unknown field" in refused(
        rewritten(lambda e: e["signatures"][0].update(cert="…"))  # type: ignore[index]
    )


def test_another_payload_type_is_refused_even_if_it_was_signed():
    found = opened(sealed(PAYLOAD, "text/plain", [KEY]), KIND, TRUSTED)
    assert found.faults == ("its payload type is 'text/plain', not 'application/vnd.in-toto+json'",)
    swapped = WHOLE.replace(b"vnd.in-toto+json", b"vnd.in-toto+jsom")
    assert (
        opened(swapped, "application/vnd.in-toto+jsom", TRUSTED)
        .faults[0]
        .endswith("was changed, or not signed")
    )


@each_row("field", ["payload", "sig"])
def test_base64_is_read_in_one_form_only(field: str):
    payload = b"\xff\xef\xbe" * 3 + b"."
    whole = sealed(payload, KIND, [KEY])
    assert look(whole).payload == payload
    envelope = json.loads(whole)
    holder = envelope if field == "payload" else envelope["signatures"][0]
    text = holder[field]
    assert text.endswith("=")
    last = text.rstrip("=")[-1]
    pad = text[len(text.rstrip("=")) :]
    loose = chr(ord(last) + 1)  # the same bytes to a lenient reader: the unused bits differ
    wrong = [
        text.rstrip("="),
        text + "=",
        text[:-1] + "\n",
        text[:4] + " " + text[4:],
        text.rstrip("=")[:-1] + loose + pad,
        text.replace("/", "_").replace("+", "-") + "!",
    ]
    if field == "payload":
        assert "/" in text
        wrong.append(text.replace("/", "_"))
    for other in wrong:
        holder[field] = other
        data = json.dumps(envelope, separators=(",", ":"), sort_keys=True).encode() + b"\n"
        assert "base64" in refused(data), other


def test_nobody_s_signature_is_none():
    assert refused(rewritten(lambda e: e.update(signatures=[]))) == "nobody signed it"


def test_a_key_that_is_not_trusted_is_named():
    said = refused(sealed(PAYLOAD, KIND, [OTHER]))
    assert OTHER.keyid in said
    assert "not trusted" in said


def test_an_id_alone_is_not_believed():
    class Liar:
        keyid = KEY.keyid
        sign = OTHER.sign

    assert "was changed, or not signed" in refused(sealed(PAYLOAD, KIND, [Liar()]))
    hidden = json.loads(sealed(PAYLOAD, KIND, [KEY]))
    hidden["signatures"][0]["keyid"] = ""
    data = json.dumps(hidden, separators=(",", ":"), sort_keys=True).encode() + b"\n"
    assert "not trusted" in refused(data)


def test_one_good_signature_does_not_make_up_for_another():
    said = refused(sealed(PAYLOAD, KIND, [KEY, OTHER]))
    assert f"signature 2 (key {OTHER.keyid})" in said
    assert "signature 1" not in said
    both = opened(sealed(PAYLOAD, KIND, [KEY, OTHER]), KIND, {**TRUSTED, OTHER.keyid: OTHER.public})
    assert both == Opened(payload=PAYLOAD, signers=(KEY.keyid, OTHER.keyid))


def test_the_same_key_twice_is_refused():
    assert "the same key" in refused(sealed(PAYLOAD, KIND, [KEY, KEY]))


def test_a_payload_under_another_signature_is_refused():
    def swap(envelope: dict[str, object]) -> None:
        envelope["payload"] = b64encode(PAYLOAD + b" ").decode()

    assert "was changed" in refused(rewritten(swap))


@each_row(
    "data",
    [b"", b"\n", b"null\n", b"[]\n", b"{}\n", b"\xff\xfe\n", b'"\xed\xa0\x80"\n', b"[" * 200_000],
)
def test_what_is_no_envelope_is_refused(data: bytes):
    assert "no DSSE envelope" in refused(data)


def test_more_than_the_bound_is_not_even_read():
    assert refused(b" " * (LARGEST + 1)) == f"it has more than {LARGEST} bytes"


def test_hostile_names_cannot_act_on_a_terminal():
    class Painter:
        keyid = "\x1b[2J\u202e"
        sign = KEY.sign

    said = refused(sealed(PAYLOAD, KIND, [Painter()]))
    assert said.isascii()
    assert "\x1b" not in said
    kind = opened(sealed(PAYLOAD, "\x1b[2J", [KEY]), KIND, TRUSTED).faults[0]
    assert "\x1b" not in kind


# --- somebody else's implementation


def their_key(key: SigningKey) -> SSlibKey:
    return SSlibKey.from_crypto(key.public.key, keyid=key.keyid)


def test_somebody_else_s_verifier_takes_our_envelope_and_none_that_was_changed():
    theirs = TheirEnvelope.from_dict(json.loads(WHOLE))
    assert list(theirs.verify([their_key(KEY)], 1)) == [KEY.keyid]
    assert theirs.payload == PAYLOAD
    assert theirs.pae() == pre_authentication(KIND, PAYLOAD)
    changed = json.loads(WHOLE)
    changed["payload"] = b64encode(PAYLOAD + b" ").decode()
    with pytest.raises(Exception, match="do not match threshold"):
        TheirEnvelope.from_dict(changed).verify([their_key(KEY)], 1)


def test_our_verifier_takes_an_envelope_that_somebody_else_signed():
    theirs = TheirEnvelope(PAYLOAD, KIND, {})
    theirs.sign(CryptoSigner(KEY.key, their_key(KEY)))
    text = json.dumps(theirs.to_dict(), separators=(",", ":"), sort_keys=True)
    assert look(text.encode() + b"\n") == Opened(payload=PAYLOAD, signers=(KEY.keyid,))
