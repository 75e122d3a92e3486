"""The receipt key: one, for its owner alone, and replaced without a gap."""

from __future__ import annotations

import base64
import hashlib
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, x25519

from truegreen.errors import InvalidInput, Unavailable
from truegreen.outlets import keys
from truegreen.outlets.keys import Keyring, read_public

ASK = """
import sys
from truegreen.outlets.keys import Keyring
ring = Keyring(sys.argv[1])
sys.stdin.read(1)
print((ring.rotate()[1] if sys.argv[2] == "rotate" else ring.signing()).keyid)
"""


@pytest.fixture
def ring(tmp_path: Path) -> Keyring:
    return Keyring(str(tmp_path / "state"))


def mode(path: str) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def at_once(ring: Keyring, verb: str, count: int) -> list[str]:
    """The key ids that so many processes get that ask in the same moment."""
    state = os.path.dirname(ring.folder)
    os.makedirs(state, exist_ok=True)
    askers = [
        subprocess.Popen(
            [sys.executable, "-c", ASK, state, verb],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(count)
    ]
    for asker in askers:
        assert asker.stdin
        asker.stdin.write("go")
        asker.stdin.close()
    answers = []
    for asker in askers:
        assert asker.stdout
        answers.append(asker.stdout.read().strip())
        asker.stdout.close()
        assert asker.wait() == 0
    return answers


# --- made on first use


def test_the_first_use_makes_a_key_for_its_owner_alone(ring: Keyring):
    assert ring.trusted() == {}
    assert not os.path.exists(ring.folder), "looking makes nothing"
    first = ring.signing()
    assert Keyring(os.path.dirname(ring.folder)).signing().keyid == first.keyid
    assert mode(ring.folder) == 0o700
    assert mode(ring.private) == 0o600
    assert sorted(os.listdir(ring.folder)) == ["lock", "public", "receipts.pem"]
    assert first.public.verified(first.sign(b"it"), b"it")
    assert not first.public.verified(first.sign(b"it"), b"that")


def test_a_loose_umask_gives_nothing_away(ring: Keyring):
    before = os.umask(0)
    try:
        ring.signing()
    finally:
        os.umask(before)
    for folder, _, names in os.walk(os.path.dirname(ring.folder)):
        assert mode(folder) == 0o700
        assert not names or {mode(os.path.join(folder, name)) for name in names} == {0o600}


def test_many_at_once_make_one_key(ring: Keyring):
    answers = at_once(ring, "signing", 6)
    assert len(set(answers)) == 1
    assert answers[0] == ring.signing().keyid
    assert list(ring.trusted()) == [answers[0]]


def test_an_id_is_the_digest_of_the_public_key_that_anybody_can_compute(ring: Keyring):
    key = ring.signing()
    body = key.public.pem().decode().split("-----")[2]
    assert hashlib.sha256(base64.b64decode(body)).hexdigest() == key.keyid
    assert read_public(key.public.pem(), "it").keyid == key.keyid


def test_no_draft_stays_behind(ring: Keyring, monkeypatch: pytest.MonkeyPatch):
    drafts: list[str] = []

    def fails(handle: int) -> None:
        if stat.S_ISREG(os.fstat(handle).st_mode):
            drafts.append(os.readlink(f"/proc/self/fd/{handle}"))
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("truegreen.outlets.whole.os.fsync", fails)
    with pytest.raises(Unavailable, match="No space left"):
        ring.signing()
    monkeypatch.undo()
    assert drafts
    left = [name for _, _, names in os.walk(ring.folder) for name in names]
    assert left == ["lock"]
    assert ring.signing()


# --- kept for its owner alone


@pytest.mark.parametrize("wrong", [0o640, 0o604, 0o620, 0o610, 0o666])
def test_a_key_that_others_can_get_at_is_refused(ring: Keyring, wrong: int):
    ring.signing()
    os.chmod(ring.private, wrong)
    for use in (ring.signing, ring.rotate, ring.trusted):
        with pytest.raises(Unavailable, match=f"has mode {wrong:04o}"):
            use()
    [fault] = ring.faults()
    assert f"chmod 600 {ring.private}" in fault.next
    os.chmod(ring.private, 0o600)
    assert ring.faults() == []
    assert ring.signing()


@pytest.mark.parametrize("wrong", [0o750, 0o701, 0o777])
def test_a_folder_that_others_can_enter_is_refused(ring: Keyring, wrong: int):
    ring.signing()
    os.chmod(ring.folder, wrong)
    with pytest.raises(Unavailable, match="others can get at the receipt key"):
        ring.signing()
    with pytest.raises(Unavailable, match="others can get at the receipt key"):
        ring.trusted()
    [fault] = ring.faults()
    assert f"chmod 700 {ring.folder}" in fault.next


@pytest.mark.parametrize("wrong", [0o750, 0o777])
def test_no_key_is_made_in_a_folder_of_others(ring: Keyring, wrong: int):
    os.makedirs(ring.folder)
    os.chmod(ring.folder, wrong)
    for use in (ring.signing, ring.rotate):
        with pytest.raises(Unavailable, match=f"mode {wrong:04o}"):
            use()
    assert os.listdir(ring.folder) == []


@pytest.mark.parametrize("which", ["private", "folder"])
def test_a_key_of_somebody_else_is_refused(
    ring: Keyring, which: str, monkeypatch: pytest.MonkeyPatch
):
    ring.signing()
    owner = os.geteuid()
    if owner == 0:
        os.chown(getattr(ring, which), 65534, -1)
    else:
        monkeypatch.setattr("truegreen.outlets.keys.os.geteuid", lambda: owner + 1)
    with pytest.raises(Unavailable, match="of ours"):
        ring.signing()
    assert any("is not a" in fault.message for fault in ring.faults())


def test_a_link_is_not_followed(ring: Keyring, tmp_path: Path):
    ring.signing()
    os.rename(ring.private, tmp_path / "elsewhere.pem")
    os.symlink(tmp_path / "elsewhere.pem", ring.private)
    with pytest.raises(Unavailable, match="is not a file of ours"):
        ring.signing()


@pytest.mark.parametrize("text", [b"", b"garbage", b"-----BEGIN PRIVATE KEY-----\nAAAA\n"])
def test_a_damaged_key_is_said_and_not_replaced_in_silence(ring: Keyring, text: bytes):
    ring.signing()
    Path(ring.private).write_bytes(text)
    with pytest.raises(Unavailable, match="holds no key"):
        ring.signing()
    assert Path(ring.private).read_bytes() == text


def test_a_key_of_another_kind_is_refused(ring: Keyring):
    ring.signing()
    other = ec.generate_private_key(ec.SECP256R1())
    Path(ring.private).write_bytes(
        other.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    )
    with pytest.raises(Unavailable, match="another kind"):
        ring.signing()


# --- rotated


def test_a_new_key_takes_over_and_the_old_one_only_checks(ring: Keyring):
    first = ring.signing()
    old, new = ring.rotate()
    assert old
    assert old.keyid == first.keyid != new.keyid
    assert ring.signing().keyid == new.keyid
    assert set(ring.trusted()) == {first.keyid, new.keyid}
    assert ring.trusted()[first.keyid].verified(first.sign(b"it"), b"it")


def test_the_old_private_key_is_destroyed(ring: Keyring, tmp_path: Path):
    ring.signing()
    os.link(ring.private, tmp_path / "second name")
    secret = (tmp_path / "second name").read_bytes()
    ring.rotate()
    left = (tmp_path / "second name").read_bytes()
    assert left == bytes(len(secret))
    everything = [
        Path(folder, name).read_bytes()
        for folder, _, names in os.walk(ring.folder)
        for name in names
    ]
    assert [text for text in everything if secret in text] == []


def test_a_rotation_that_fails_leaves_the_old_key_in_force(
    ring: Keyring, monkeypatch: pytest.MonkeyPatch
):
    first = ring.signing()

    def full(path: str, *_: object, **__: object) -> None:
        if path == ring.private:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(keys, "write_whole", full)
    with pytest.raises(Unavailable, match="No space left"):
        ring.rotate()
    monkeypatch.undo()
    assert ring.signing().keyid == first.keyid


def test_a_public_half_that_was_lost_is_kept_again_before_its_key_goes(ring: Keyring):
    first = ring.signing()
    os.unlink(os.path.join(ring.public, f"{first.keyid}.pem"))
    ring.rotate()
    assert first.keyid in ring.trusted()


def test_rotating_without_a_key_makes_one(ring: Keyring):
    old, new = ring.rotate()
    assert old is None
    assert ring.signing().keyid == new.keyid


def test_rotations_at_once_lose_no_public_key(ring: Keyring):
    first = ring.signing()
    made = at_once(ring, "rotate", 4)
    assert len(set(made)) == 4
    assert set(ring.trusted()) == {first.keyid, *made}
    assert ring.signing().keyid in made


def test_a_kept_key_is_known_by_what_it_is_not_by_its_name(ring: Keyring):
    ring.signing()
    stranger = ed25519.Ed25519PrivateKey.generate().public_key()
    pem = stranger.public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    place = Path(ring.public, f"{'0' * 64}.pem")
    place.write_bytes(pem)
    known = ring.trusted()
    assert "0" * 64 not in known
    assert all(keyid == key.keyid for keyid, key in known.items())


# --- public keys from elsewhere


def test_only_public_ed25519_keys_are_read(ring: Keyring):
    spki = (form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    others = [
        ec.generate_private_key(ec.SECP256R1()).public_key().public_bytes(*spki),
        x25519.X25519PrivateKey.generate().public_key().public_bytes(*spki),
    ]
    for pem in others:
        with pytest.raises(InvalidInput, match="another kind"):
            read_public(pem, "theirs.pem")
    ring.signing()
    for text in (b"", b"hello", Path(ring.private).read_bytes()):
        with pytest.raises(InvalidInput, match=r"theirs\.pem holds no public key"):
            read_public(text, "theirs.pem")
