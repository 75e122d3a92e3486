"""`[[notify]]`, `[github]`, `[otel]`, `[alerts]`, `[heartbeat]`: what is told, where, and when.

Secrets are never written here: a key names the environment variable that holds one. Sending is not
this room's business.
"""

from typing import Annotated

from msgspec import Meta, field

from truegreen.contract.doers import Name, Strict, Words
from truegreen.contract.reading import (
    PATH_BYTES,
    Duration,
    canonical,
    checked,
    checked_command,
    checked_line,
    checked_name,
    checked_number,
    checked_variable,
    digest_of,
    minutes,
    refusal,
    unknown_word,
)
from truegreen.enums import StrEnum
from truegreen.model import Cell, TaskStatus
from truegreen.patterns import late

ZOMBIE = "zombie"
ALERTS = ("blocked_long", "pending_long", "unknown_share", "queue_age", "queue_depth")
"""What is told because of an age or a share, not because of something that happened."""
HOLDING = ("breaker", "limit")
"""What holds many tasks back at once."""
NOTIFIABLE = tuple(sorted({*map(str, Cell), *map(str, TaskStatus), ZOMBIE, *ALERTS, *HOLDING}))
DEFAULT_NEWS = (
    *("silent_failure", "reported_failure", "cap_hit", "outage", "blocked", "needs_review"),
    ZOMBIE,
    *ALERTS,
    *HOLDING,
)
News = Annotated[
    str,
    Meta(
        description="a cell, a task status, an alert, breaker, limit, or zombie",
        extra_json_schema={"enum": list(NOTIFIABLE)},
    ),
]
_PORT = Meta(ge=1, le=65535, description="a TCP port")
_REPOSITORY = late(r"[A-Za-z0-9-]{1,39}/[A-Za-z0-9._-]{1,100}")
_ADDRESS = late(r"[^@\s,;:<>]{1,64}@[^@\s,;:<>]{1,255}")
WAYS = ("url", "webhook", "command", "mail")
_DIGITS = 8


class Tls(StrEnum):
    """How a mail server is spoken to."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


class Mail(Strict, frozen=True, kw_only=True):
    """A mail server, and who is written to."""

    host: str
    sender: str = field(name="from")
    to: tuple[str, ...]
    port: Annotated[int, _PORT] = 587
    tls: Tls = Tls.STARTTLS
    user: str = ""
    password_env: str = ""

    def __post_init__(self) -> None:
        checked_line(self.host, "host")
        checked_number(self.port, "port", _PORT)
        if not self.to:
            raise refusal("to", "names nobody")
        places = {"from": self.sender, **{f"to[{n}]": who for n, who in enumerate(self.to)}}
        for place, who in places.items():
            if not _ADDRESS.fullmatch(checked(who, place, PATH_BYTES)):
                raise refusal(place, "expected an address such as ops@example.org")
        if bool(self.user) != bool(self.password_env):
            raise refusal("password_env", "a user has a password, and a password a user")
        if self.password_env:
            checked_variable(self.password_env, "password_env")
        if self.user and self.tls is Tls.NONE:
            raise refusal("tls", "a password is not sent in the clear")


class Escalation(Strict, frozen=True, kw_only=True):
    """Who is told after some time of what nobody has taken."""

    after: Duration
    to: tuple[Name, ...]

    def __post_init__(self) -> None:
        if not self.to:
            raise refusal("to", "names nobody")
        for n, name in enumerate(self.to):
            checked_name(name, f"to[{n}]")


class Notify(Strict, frozen=True, kw_only=True):
    """Where news goes, and which."""

    name: Name = ""
    url: str = ""
    webhook: str = ""
    command: Words = ()
    mail: Mail | None = None
    secret_env: str = ""
    allow_private: bool = False
    on: tuple[News, ...] = DEFAULT_NEWS
    cooldown: Duration | None = None
    escalate: Escalation | tuple[Escalation, ...] = ()
    resolved: bool | None = None

    def __post_init__(self) -> None:
        given = [way for way in WAYS if getattr(self, way)]
        if len(given) != 1:
            words = "a notification has either a url or a webhook, a command or a mail"
            raise refusal("url", words)
        if self.name:
            checked_name(self.name, "name")
        if self.url and "://" not in checked(self.url, "url", PATH_BYTES):
            raise refusal("url", "expected an address such as slack://...")
        if self.webhook:
            checked_web(self.webhook, "webhook")
        checked_command(self.command, "command")
        if self.secret_env:
            checked_variable(self.secret_env, "secret_env")
        for n, word in enumerate(self.on):
            if word not in NOTIFIABLE:
                raise unknown_word(f"on[{n}]", word, NOTIFIABLE)
        times = [step.after for step in self.steps]
        if sorted(set(times)) != times:
            raise refusal("escalate", "each step comes later than the one before")

    @property
    def way(self) -> str:
        """How news goes there."""
        return next(way for way in WAYS if getattr(self, way))

    @property
    def steps(self) -> tuple[Escalation, ...]:
        """Who is told of what nobody takes, one after the other."""
        return (self.escalate,) if isinstance(self.escalate, Escalation) else self.escalate

    @property
    def tells_resolved(self) -> bool:
        """Whether it is told that something needs nobody any more; programs and chats are."""
        return self.way in ("webhook", "url") if self.resolved is None else self.resolved


_SHARE = Meta(ge=0.0, le=1.0, description="a share from 0 to 1")
_COUNT = Meta(ge=1, le=1_000_000_000, description="a number")


class Alerts(Strict, frozen=True, kw_only=True):
    """What somebody is told because it lasts too long, or because there is too much of it."""

    blocked_after: Duration = field(default_factory=lambda: minutes(24 * 60))
    pending_after: Duration = field(default_factory=lambda: minutes(60))
    queued_after: Duration = field(default_factory=lambda: minutes(60))
    queue_depth: Annotated[int, _COUNT] = 1000
    unknown_share: Annotated[float, _SHARE] = 0.2
    unknown_of: Annotated[int, _COUNT] = 20

    def __post_init__(self) -> None:
        checked_number(self.queue_depth, "queue_depth", _COUNT)
        checked_number(self.unknown_share, "unknown_share", _SHARE)
        checked_number(self.unknown_of, "unknown_of", _COUNT)


_SHORTEST_BEAT = Duration(5_000_000)


class Heartbeat(Strict, frozen=True, kw_only=True):
    """Where whatever looks for work says that it is well, for whoever watches that it does."""

    url: str = ""
    command: Words = ()
    every: Duration = field(default_factory=lambda: minutes(1))
    figures: bool = False
    allow_private: bool = False

    def __post_init__(self) -> None:
        if not self.url and not self.command:
            raise refusal("url", "a heartbeat has a url, a command, or both")
        if self.url:
            checked_web(self.url, "url")
        checked_command(self.command, "command")
        if self.every < _SHORTEST_BEAT:
            raise refusal("every", f"expected {_SHORTEST_BEAT} or more")


class As(StrEnum):
    """What a task is on GitHub."""

    AUTO = "auto"
    CHECKS = "checks"
    STATUSES = "statuses"


class GitHub(Strict, frozen=True, kw_only=True):
    """Which repository is told how its commits were judged."""

    token_env: str = "GITHUB_TOKEN"  # noqa: S105 - the name of a variable
    repository: str = ""
    api: str = "https://api.github.com"
    check: str = "truegreen"
    as_: As = field(default=As.AUTO, name="as")
    allow_private: bool = False

    def __post_init__(self) -> None:
        checked_variable(self.token_env, "token_env")
        checked_web(self.api, "api")
        checked_line(self.check, "check")
        if self.repository and not _REPOSITORY.fullmatch(
            checked(self.repository, "repository", PATH_BYTES)
        ):
            raise refusal("repository", "expected owner/name")


class Otel(Strict, frozen=True, kw_only=True):
    """Where traces and evaluation events go, by OTLP over HTTP."""

    endpoint: str = "http://127.0.0.1:4318"
    service: str = "truegreen"
    headers_env: str = ""

    def __post_init__(self) -> None:
        checked_web(self.endpoint, "endpoint")
        checked_line(self.service, "service")
        if self.headers_env:
            checked_variable(self.headers_env, "headers_env")


def checked_web(text: str, what: str) -> None:
    """An address on the web."""
    if not checked(text, what, PATH_BYTES).startswith(("https://", "http://")):
        raise refusal(what, "expected an address that starts with https://")
    if not text.isprintable() or " " in text:
        raise refusal(what, "contains a blank or a control character")


def outlet_names(notices: tuple[Notify, ...]) -> tuple[str, ...]:
    """What each is called: as it says, or by its way and its address.

    Never by its place in the file: what one owes must not go to another that has moved up.
    """
    names = tuple(each.name or _called(each) for each in notices)
    for n, name in enumerate(names):
        if name in names[:n] or name in ("github", "otel"):
            hint = "" if notices[n].name else "; it goes to the same address: give this one a name"
            raise refusal(f"notify[{n}].name", f'something else is called "{name}" already{hint}')
    return names


def check_escalations(notices: tuple[Notify, ...]) -> None:
    """Whoever is told later is set up, and somebody else."""
    names = outlet_names(notices)
    for n, (name, notice) in enumerate(zip(names, notices, strict=True)):
        others = [each for each in names if each != name]
        for step in notice.steps:
            for word in step.to:
                if word not in others:
                    raise unknown_word(f"notify[{n}].escalate.to", word, others)


def _called(notice: Notify) -> str:
    digest = digest_of(canonical(getattr(notice, notice.way)))
    return f"{notice.way}-{digest.partition(':')[2][:_DIGITS]}"
