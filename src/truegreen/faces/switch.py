"""The freeze of a store, as every face shows it. It freezes and thaws nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truegreen.faces.times import instant, local

if TYPE_CHECKING:
    from truegreen.record.ledger.wakes import Freeze


def freeze_document(freeze: Freeze | None) -> dict[str, Any] | None:
    """Who has frozen a store, why and since when; nothing while runs may start."""
    if freeze is None:
        return None
    return {"by": freeze.actor, "reason": freeze.reason, "since": instant(freeze.at)}


def freeze_words(freeze: Freeze) -> str:
    """The same for people, and what leads on."""
    words = f"frozen since {local(freeze.at)} by {freeze.actor}: {freeze.reason}"
    return f'{words}; nothing starts until: truegreen thaw --reason "all clear"'
