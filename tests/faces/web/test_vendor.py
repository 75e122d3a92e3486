"""What the pages load from others is listed, whole, and nothing else."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from truegreen.faces.web.pages.assets import FOLDER

VENDOR = Path(FOLDER) / "vendor"
LISTED = json.loads((VENDOR / "vendor.json").read_text())


def test_every_vendored_file_is_what_the_list_says() -> None:
    found = {each["file"]: hashlib.sha256((VENDOR / each["file"]).read_bytes()) for each in LISTED}
    wrong = [each["file"] for each in LISTED if found[each["file"]].hexdigest() != each["sha256"]]
    assert wrong == []


def test_no_vendored_file_is_unlisted() -> None:
    there = {path.name for path in VENDOR.iterdir() if path.suffix in (".js", ".css")}
    assert there == {each["file"] for each in LISTED}


def test_every_vendored_file_says_whose_it_is_and_under_which_licence() -> None:
    for each in LISTED:
        assert set(each) == {"file", "name", "version", "licence", "from", "sha256"}
        assert each["licence"] in ("0BSD", "MIT")
        stem = each["name"].removesuffix(".org")
        assert (VENDOR / f"{stem}.LICENSE").is_file()


def test_no_vendored_file_asks_for_another_one() -> None:
    for each in LISTED:
        text = (VENDOR / each["file"]).read_text()
        assert "sourceMappingURL" not in text
        assert "//# " not in text
        assert "@import" not in text
