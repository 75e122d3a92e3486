"""Who does a run: the program, how it is resumed, and what it may reach; a word more is another."""

import posixpath
import re
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import force_setattr

from truegreen.contract.reading import (
    NAME,
    canonical,
    checked_command,
    checked_name,
    checked_names,
    checked_paths,
    checked_variable,
    checked_word,
    digest_of,
    refusal,
)
from truegreen.enums import StrEnum

HOST = r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?(?::[0-9]{1,5})?"

Name = Annotated[str, Meta(description="a name", extra_json_schema={"pattern": f"^{NAME}$"})]
Words = Annotated[tuple[str, ...], Meta(description="a program and its arguments; no shell")]
Globs = Annotated[tuple[str, ...], Meta(description="paths or globs in the workspace")]


class Home(StrEnum):
    """Whose home directory an agent sees."""

    SHARED = "shared"
    PRIVATE = "private"


class Strict(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all edge types share: frozen, by keyword, and unknown keys are refused."""


class Doer(Strict, frozen=True, kw_only=True):
    """The program, how to resume it, and what it may reach."""

    adapter: Name = "command"
    command: Words = ()
    resume: Words = ()
    home: Home = Home.SHARED
    writable: Globs = ()
    network: bool = True
    pass_env: tuple[str, ...] = ()
    connectors: tuple[Name, ...] = ()
    hooks: bool | Literal["http"] = True
    credentials: tuple[str, ...] = ()

    @property
    def client(self) -> str:
        """What a provider that is away holds up: the adapter, or of a plain command its program."""
        plain = self.adapter == "command" and self.command
        return posixpath.basename(self.command[0]) if plain else self.adapter

    def __post_init__(self) -> None:
        checked_name(self.adapter, "adapter")
        checked_command(self.command, "command")
        checked_command(self.resume, "resume")
        checked_word(self.home, "home", Home)
        checked_paths(self.writable, "writable")
        for n, name in enumerate(self.pass_env):
            checked_variable(name, f"pass_env[{n}]")
        for n, host in enumerate(self.credentials):
            if not re.fullmatch(HOST, host):
                problem = f'expected a host such as "github.com", not "{host}"'
                raise refusal(f"credentials[{n}]", problem)
        force_setattr(self, "credentials", tuple(sorted(set(self.credentials))))
        force_setattr(self, "connectors", checked_names(self.connectors, "connectors"))


class AgentDefinition(Doer, frozen=True, kw_only=True):
    """Who does a run; a conversation with it can outlive the run."""

    def definition_digest(self) -> str:
        """The identity of the definition; another word in it is another agent."""
        return digest_of(canonical(self))
