"""Strict reading: single values, durations, JSON and TOML come in checked, or are refused.

A refusal names the path, what was expected, what came, and the nearest right word. This room knows
types, but not which ones there are; it opens no file.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Meta, Struct, UnsetType

from truegreen.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T")

LINE_CHARACTERS = 500
PATH_BYTES = 4 * 1024
TEXT_BYTES = 64 * 1024
ARGUMENT_BYTES = 128 * 1024 - 1  # what Linux takes as one argument

NAME = "[a-z0-9][a-z0-9_.-]{0,63}"
# Characters that would break a line, forge one, or turn its direction on a terminal.
_UNPRINTABLE = "[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
_QUOTED = 80


def refusal(path: str, problem: str, allowed: Iterable[str] = ()) -> InvalidInput:
    """An error about the value at `path`."""
    message = f"{path}: {problem}" if path else problem
    return InvalidInput(message, allowed=tuple(allowed), path=path)


def unknown_word(path: str, value: object, words: Iterable[str], table: str = "") -> InvalidInput:
    """The refusal of a value outside a closed set, or of what no `table` of the file defines."""
    known = sorted(words)
    none = f"no [{table}.…] is defined that it could name" if table else "there is nothing to name"
    listed = f"expected one of {', '.join(known)}" if known else none
    nearest = _nearest(value, known) if isinstance(value, str) else None
    hint = f' (did you mean "{nearest}"?)' if nearest else ""
    return refusal(path, f"{listed}; got {shown(value)}{hint}", known)


def _nearest(word: str, known: list[str]) -> str | None:
    import difflib  # noqa: PLC0415 - only a refusal needs it, and start-up time is measured

    return next(iter(difflib.get_close_matches(word[:_QUOTED], known, n=1, cutoff=0.5)), None)


def shown(value: object) -> str:
    """A value as an error message quotes it: as JSON where that exists, and short."""
    try:
        text = repr(value) if isinstance(value, float) else msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        text = ascii(value) if isinstance(value, str) else type(value).__name__
    return text if len(text) <= _QUOTED else f"{text[: _QUOTED - 3]}..."


# --- single values


def checked(text: object, what: str, limit: int) -> str:
    """The text itself, if it is valid Unicode, without NUL, and no longer than `limit` bytes."""
    if not isinstance(text, str):
        raise refusal(what, f"expected text; got {shown(text)}")
    if text.isascii() and len(text) <= limit and "\0" not in text:
        return text  # nearly always; contracts are read for every step of a task
    if "\0" in text:
        raise refusal(what, "contains a NUL byte")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise refusal(what, "is not valid Unicode (a lone surrogate)") from None
    if size > limit:
        raise refusal(what, f"has {size} bytes; the limit is {limit}")
    return text


def checked_line(text: object, what: str) -> str:
    """One line that is safe to print: not blank, no control or direction characters."""
    line = checked(text, what, 4 * LINE_CHARACTERS)
    if len(line) > LINE_CHARACTERS:
        raise refusal(what, f"has {len(line)} characters; the limit is {LINE_CHARACTERS}")
    if not line.strip():
        raise refusal(what, "is empty")
    if not line.isprintable() and re.search(_UNPRINTABLE, line):
        raise refusal(what, "contains a line break or a control character")
    return line


def checked_name(text: object, what: str) -> str:
    """A name as keys, labels and roles are spelled."""
    name = checked(text, what, PATH_BYTES)
    if not re.fullmatch(NAME, name):
        raise refusal(what, f"{shown(name)} is no name; a name looks like fix-parser ({NAME})")
    return name


def checked_optional_name(text: object, what: str) -> None:
    """A name, or nothing."""
    if text != "":
        checked_name(text, what)


def checked_names(texts: Iterable[object], what: str) -> tuple[str, ...]:
    """A set of names, in the one order that gives the one digest."""
    return tuple(sorted({checked_name(text, f"{what}[{n}]") for n, text in enumerate(texts)}))


def checked_paths(texts: Iterable[object], what: str) -> None:
    """Paths or globs: none empty, none too long for the system."""
    for n, text in enumerate(texts):
        if not checked(text, f"{what}[{n}]", PATH_BYTES):
            raise refusal(f"{what}[{n}]", "is empty")


def checked_variable(text: object, what: str) -> None:
    """The name of an environment variable."""
    if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", checked(text, what, PATH_BYTES)):
        raise refusal(what, f"{shown(text)} is no name of an environment variable")


def checked_command(words: tuple[str, ...], what: str) -> None:
    """A program and its arguments, or nothing."""
    for n, word in enumerate(words):
        checked(word, f"{what}[{n}]", ARGUMENT_BYTES)
    if words and not words[0].strip():
        raise refusal(f"{what}[0]", "is empty; a command starts with a program")


def checked_number(value: object, what: str, limits: Meta) -> None:
    """Limits of a type, held also for values that were made in Python; NaN is inside none."""
    low, high = limits.ge or 0, limits.le or 0
    kind = int if isinstance(limits.ge, int) else (int, float)
    numeric = isinstance(value, kind) and not isinstance(value, bool)
    if not numeric or not low <= value <= high:  # type: ignore[operator]
        raise refusal(what, f"expected a number from {low} to {high}; got {shown(value)}")


def checked_word(value: object, what: str, words: type[Enum]) -> None:
    """A member of a closed set."""
    if not isinstance(value, words) and value not in {word.value for word in words}:
        raise unknown_word(what, value, [str(word.value) for word in words])


# --- durations

_UNITS = {
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
    "us": 1,
}
_PARTS = "(?=.)" + "".join(f"(?:([0-9]{{1,15}}){unit}(?![a-z]))?" for unit in _UNITS)
_LONGEST_DAYS = 3_650
DURATION_FORMS = (
    'a duration such as "500ms", "90s", "15m", "1h30m", "2d", or a number of seconds; '
    f"more than 0, at most {_LONGEST_DAYS}d"
)


class Duration(int):
    """Microseconds. Written as `1h30m`; a bare number at the edge means seconds."""

    __slots__ = ()

    def __str__(self) -> str:
        text, rest = "", int(self)
        for unit, size in _UNITS.items():
            count, rest = divmod(rest, size)
            text += f"{count}{unit}" if count else ""
        return text

    def __repr__(self) -> str:
        return f"Duration({self})"


def minutes(count: int) -> Duration:
    """So many minutes."""
    return Duration(count * _UNITS["m"])


def parse_duration(value: object, what: str = "") -> Duration:
    """Microseconds from `1h30m`, `500ms` or a number of seconds."""
    size = _microseconds(value)
    if not 0 < size <= _LONGEST_DAYS * _UNITS["d"]:
        raise refusal(what, f"expected {DURATION_FORMS}; got {shown(value)}")
    return Duration(size)


def _microseconds(value: object) -> int:
    """Zero where there is no reading: no duration may be zero."""
    if isinstance(value, Duration):
        return int(value)
    if isinstance(value, str):
        return _microseconds_of_text(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 10**9:
        return round(value * _UNITS["s"])
    return 0


def _microseconds_of_text(text: str) -> int:
    if re.fullmatch("[0-9]{1,9}", text):  # on a command line a number of seconds is text
        return int(text) * _UNITS["s"]
    found = re.fullmatch(_PARTS, text)
    counts = found.groups(default="0") if found else ()
    return sum(int(count) * size for count, size in zip(counts, _UNITS.values(), strict=False))


def duration_field(value: object, what: str) -> Duration:
    """For values made in Python: a bare number is refused, because nobody could tell its unit."""
    if isinstance(value, Duration | str):
        return parse_duration(value, what)
    raise refusal(what, f"expected a Duration or text such as 15m; got {shown(value)}")


# --- whole documents


def _decode_hook(kind: type, value: object) -> object:
    if kind is Duration:
        return parse_duration(value)
    raise NotImplementedError(kind)


def _encode_hook(value: object) -> object:
    if isinstance(value, Duration):
        return str(value)
    raise NotImplementedError(type(value))


def canonical(value: object) -> str:
    """The one JSON text of a value: sorted keys, no spaces."""
    return msgspec.json.encode(value, order="sorted", enc_hook=_encode_hook).decode()


def plain(value: object) -> Any:
    """A value as dicts, lists and scalars, all defaults spelled out."""
    return msgspec.json.decode(canonical(value))


def digest_of(text: str) -> str:
    """`sha256:` and the hexadecimal digest of a text."""
    import hashlib  # noqa: PLC0415 - loads OpenSSL; most commands digest nothing

    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def learn_types() -> None:
    """Have every type that is loaded known before several threads read it for the first time.

    msgspec learns a type when it first reads one, and a second thread that comes in the middle of
    that ends the whole process.
    """
    known = [msgspec.Struct]
    for kind in known:  # it grows meanwhile
        known += kind.__subclasses__()
        if kind.__module__.startswith("truegreen."):
            msgspec.json.Decoder(kind, dec_hook=_decode_hook)


def read_json(data: bytes | str, kind: type[T], source: str) -> T:
    """Decode JSON into `kind`; unknown keys, wrong types and wrong values are refused."""
    try:
        try:
            return msgspec.json.decode(data, type=kind, dec_hook=_decode_hook)
        except (msgspec.ValidationError, InvalidInput):
            raw = msgspec.json.decode(data)  # once more without a type, to find the place
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise refusal(source, f"not JSON: {error}") from None
    return convert(raw, kind, source)


def toml_document(text: bytes | str, source: str) -> dict[str, Any]:
    """Decode TOML into plain dicts."""
    import tomllib  # noqa: PLC0415 - many commands read no file

    try:
        return tomllib.loads(text if isinstance(text, str) else text.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise refusal(source, f"not UTF-8: byte {error.start} is wrong") from None
    except (ValueError, RecursionError) as error:
        raise refusal(source, f"not TOML: {error}") from None


def convert(raw: object, kind: type[T], source: str) -> T:
    """Plain dicts and lists into `kind`; the first thing that is wrong is refused with its path."""
    try:
        return msgspec.convert(raw, kind, dec_hook=_decode_hook)
    except (msgspec.ValidationError, InvalidInput, RecursionError, UnicodeError) as error:
        raise in_source(source, _fault(raw, kind, "") or refusal("", str(error))) from None


def taken(raw: object, kind: type[T], *, strict: bool = True) -> T:
    """What a request brings; not `strict` where numbers and switches come as words, too."""
    try:
        return msgspec.convert(raw, kind, strict=strict)
    except (msgspec.ValidationError, RecursionError, UnicodeError) as error:
        raise _fault(raw, kind, "", strict=strict) or refusal("", str(error)) from None


def _fault(value: object, kind: Any, path: str, *, strict: bool = True) -> InvalidInput | None:
    """What is wrong inside `value`, deepest first; msgspec's own paths leave out the names."""
    kind = _meant(kind, value)
    bare = _bare(kind, value)
    inner: Iterable[InvalidInput | None] = ()
    if isinstance(value, dict) and isinstance(bare, type) and issubclass(bare, Struct):
        inner = _faults_of_fields(value, bare, path, strict=strict)
    elif isinstance(value, dict) and get_origin(bare) is dict:
        item = get_args(bare)[1]
        inner = (
            _fault(part, item, join(path, str(key)), strict=strict) for key, part in value.items()
        )
    elif isinstance(value, list | tuple) and get_origin(bare) is tuple:
        item = get_args(bare)[0]
        inner = (_fault(part, item, f"{path}[{n}]", strict=strict) for n, part in enumerate(value))
    found = next((fault for fault in inner if fault), None)
    return found or _fault_of_whole(value, kind, path, strict=strict)


def _meant(kind: Any, value: object) -> Any:
    """The type without the members of a union that `value` can't have been meant for."""
    absent = {UnsetType} if value is None else {UnsetType, type(None)}
    members = tuple(member for member in get_args(kind) if member not in absent)
    return kind if len(members) == len(get_args(kind)) else Union[members]  # noqa: UP007 - made here


def _bare(kind: Any, value: object) -> Any:
    """The type without its limits."""
    return _meant(get_args(kind)[0], value) if get_origin(kind) is Annotated else kind


def _faults_of_fields(
    value: dict[Any, Any], kind: type[Struct], path: str, *, strict: bool
) -> Iterable[InvalidInput | None]:
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    yield from (_unknown_key(path, str(key), sorted(fields)) for key in value if key not in fields)
    for name, field in fields.items():
        if name in value:
            yield _fault(value[name], field.type, join(path, name), strict=strict)
        elif field.required:
            yield refusal(join(path, name), "is required")


def _unknown_key(path: str, key: str, known: list[str]) -> InvalidInput:
    nearest = _nearest(key, known)
    hint = f'did you mean "{nearest}"?' if nearest else f"known keys: {', '.join(known)}"
    return refusal(join(path, key), f"unknown key; {hint}", known)


def _fault_of_whole(value: object, kind: Any, path: str, *, strict: bool) -> InvalidInput | None:
    bare = _bare(kind, value)
    try:
        msgspec.convert(value, kind, strict=strict, dec_hook=_decode_hook)
    except InvalidInput as error:
        return at(path, error)
    except (msgspec.ValidationError, RecursionError, UnicodeError) as error:
        if isinstance(bare, type) and issubclass(bare, Enum):
            return unknown_word(path, value, [str(word.value) for word in bare])
        return refusal(
            path, f"{_expected(error)}{_as_array(path, value, error)}; got {shown(value)}"
        )
    return None


def _as_array(path: str, value: object, error: Exception) -> str:
    """What the value would be as an array: a command is one of words, and no shell reads it."""
    if not isinstance(value, str) or not str(error).startswith("Expected `array`"):
        return ""
    if not path.endswith(("command", "resume", "args")):
        return f" such as {shown([value])}" if value.strip() else ", and [] for none"
    return f" of words such as {shown(_words(value))}"


def _words(line: str) -> list[str]:
    import shlex  # noqa: PLC0415 - only a refusal needs it

    try:
        return shlex.split(line[:_QUOTED])
    except ValueError:
        return line[:_QUOTED].split()


def _expected(error: Exception) -> str:
    """What msgspec expected, in our words."""
    text = str(error).split(" - at ", 1)[0].split(", got ", 1)[0].replace("`", "")
    return text[:1].lower() + text[1:]


def at(path: str, error: InvalidInput) -> InvalidInput:
    """The same refusal, seen from outside: its path starts further up."""
    inner = str(error.details.get("path", ""))
    problem = error.message.removeprefix(f"{inner}: ")
    return refusal(join(path, inner), problem, error.allowed)


def in_source(source: str, error: InvalidInput) -> InvalidInput:
    """The same refusal, with the document that it is about."""
    message = f"{source}: {error.message}"
    return InvalidInput(message, allowed=error.allowed, **error.details)


def join(path: str, key: str) -> str:
    """One path from two."""
    return f"{path}.{key}" if path and key and not key.startswith("[") else path + key
