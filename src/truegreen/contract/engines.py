"""`[engine]`: who places and starts the work: the seats of this machine, or somebody's cluster.

What an engine is told is said here; what it says back is never believed.
"""

from typing import Annotated, Any

from msgspec import Meta, field
from msgspec.structs import force_setattr

from truegreen.contract.doers import Name, Strict
from truegreen.contract.reading import (
    LINE_CHARACTERS,
    PATH_BYTES,
    Duration,
    checked,
    checked_name,
    checked_number,
    checked_variable,
    duration_field,
    refusal,
)
from truegreen.enums import StrEnum

MOST = Meta(ge=1, le=10_000, description="how many jobs at the same time")
CPUS = Meta(ge=0.0, le=1024.0, description="processors for each job")


class EngineKind(StrEnum):
    """Who places work."""

    LOCAL = "local"
    SLURM = "slurm"
    RAY = "ray"
    KUBERNETES = "kubernetes"


class Engine(Strict, frozen=True, kw_only=True):
    """Where queued tasks are carried out."""

    kind: EngineKind = EngineKind.LOCAL
    name: Name = ""
    """What the record calls it; two clusters of one kind need two names."""
    most: Annotated[int, MOST] = 50
    labels: tuple[Name, ...] = ()
    """Labels that its nodes can have; a task that asks for another one is not handed over."""
    env: tuple[str, ...] = ()
    """Further variables that its jobs get, by name."""
    time: Duration | None = None
    """After what time the engine may end a job; without it, what the task's caps leave room for."""
    program: str = ""
    """truegreen as its nodes find it."""
    cpus: Annotated[float, CPUS] = 1.0
    partition: str = ""
    options: tuple[str, ...] = ()
    """Further options of sbatch."""
    address: str = ""
    """Where Ray's head is; empty: the Ray that runs on this machine."""
    image: str = ""
    namespace: str = "default"
    secret: str = ""
    """The Secret whose keys are a pod's environment: TRUEGREEN_STORE, and what agents need."""
    api: str = ""
    """The address of the Kubernetes API; empty: that of the cluster in which this runs."""
    token_file: str = ""
    ca_file: str = ""
    pod: dict[str, Any] = field(default_factory=dict)
    """More of a pod's specification: volumes, tolerations; what truegreen sets stays as it is."""
    container: dict[str, Any] = field(default_factory=dict)
    """More of its container: volumeMounts, resources."""

    def __post_init__(self) -> None:
        checked_number(self.most, "most", MOST)
        checked_number(self.cpus, "cpus", CPUS)
        if self.name:
            checked_name(self.name, "name")
        for n, variable in enumerate(self.env):
            checked_variable(variable, f"env[{n}]")
        for n, label in enumerate(self.labels):
            checked_name(label, f"labels[{n}]")
        for n, option in enumerate(self.options):
            if not checked(option, f"options[{n}]", LINE_CHARACTERS).startswith("-"):
                raise refusal(f"options[{n}]", 'expected an option of sbatch such as "--mem=4G"')
        for key in ("program", "partition", "address", "image", "namespace", "secret"):
            checked(getattr(self, key), key, PATH_BYTES)
        for key in ("api", "token_file", "ca_file"):
            checked(getattr(self, key), key, PATH_BYTES)
        if self.time is not None:
            force_setattr(self, "time", duration_field(self.time, "time"))

    @property
    def called(self) -> str:
        """Its name in the record."""
        return self.name or self.kind.value
