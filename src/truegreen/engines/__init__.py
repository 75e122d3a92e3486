"""Engines that others run: they place and start `truegreen attempt`, and that is all.

Leases, fences and verdicts stay in the record. An engine's word is shown to people; nothing green,
dead or done ever follows from it.
"""

from __future__ import annotations

from collections.abc import Mapping

from truegreen.contract.engines import Engine as Settings
from truegreen.contract.engines import EngineKind
from truegreen.engines.kubernetes import Kubernetes
from truegreen.engines.ray import Ray
from truegreen.engines.seam import Engine, Order, Seen
from truegreen.engines.slurm import Slurm

__all__ = ["KINDS", "Engine", "Order", "Seen", "engine_of"]

KINDS: dict[EngineKind, type[Slurm | Ray | Kubernetes]] = {
    EngineKind.SLURM: Slurm,
    EngineKind.RAY: Ray,
    EngineKind.KUBERNETES: Kubernetes,
}
"""`local` is none of them: that is the seats of the scheduler itself."""


def engine_of(settings: Settings, environ: Mapping[str, str]) -> Engine | None:
    """The engine that is set, if it can be used from here; none where work stays here."""
    if settings.kind is EngineKind.LOCAL:
        return None
    made = KINDS[settings.kind](settings, environ)
    made.check()
    return made
