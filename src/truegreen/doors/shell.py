"""A command line as a shell splits it: the simple commands in it, however deep, as their words.

Pure. Quotes, comments, redirections, here-documents and substitutions are read as a shell reads
them. Nothing is expanded: what a variable, a brace or a pattern stands for is not known here. A
line that does not add up is split at every sign, so that a doubt shows too much and not too little.
"""

from __future__ import annotations

import codecs
import re

from truegreen.patterns import late

Words = list[str]

_PLAIN = late(r"[^\s;&|()<>\\'\"`$#]+")
_IN_QUOTES = late(r"[^\\\"`$]+")
_TO = late(r"<<<|<<-?|<>|<&|>>|>&|>\||<|>")
_APART = late(r"[;&|\n(){}`]+")
_REDIRECTED = late(r"\d*[<>]+[&|]?\s*[^\s;&|()<>]*")
_NOISE = str.maketrans("", "", "'\"\\$")
_ESCAPABLE = '$`"\\\n'
_DEEPEST = 40


class _Unread(Exception):
    """Something is opened and never closed, or too deep."""


def commands_of(line: str, depth: int = 0) -> list[Words]:
    """The simple commands of a line, the ones inside of others too."""
    try:
        return [words for words in _Reading(line, depth).all() if words]
    except _Unread:
        return split_roughly(line)


def split_roughly(text: str) -> list[Words]:
    """Whatever could be a command in a text, quoted or not."""
    plain = _REDIRECTED.sub(" ", text.replace("\\\n", " "))
    parts = (part.translate(_NOISE).split() for part in _APART.split(plain))
    return [words for words in parts if words]


class _Reading:
    """One pass over a text; whatever it finds inside goes into the same list."""

    def __init__(self, text: str, depth: int) -> None:
        self._text, self._at, self._depth = text, 0, depth
        self._found: list[Words] = []
        self._pending: list[tuple[str, bool]] = []
        """Here-documents that begin with the next line: how they end, and if tabs are cut off."""
        if depth > _DEEPEST:
            raise _Unread

    def all(self) -> list[Words]:
        """Everything to the end of the text."""
        self._commands(closed=False)
        return self._found

    def _commands(self, *, closed: bool) -> None:
        """Simple commands up to the end, or up to the parenthesis that closes them."""
        simple = _Simple()
        opened = cases = 0
        while self._at < len(self._text):
            sign = self._text[self._at]
            if self._text.startswith("\\\n", self._at):
                self._at += 2
            elif sign in " \t\r\f\v":
                self._at += 1
                simple.end_word()
            elif sign == "#" and not simple.in_word:
                self._at = self._line_end()
            elif sign in "<>" or self._text.startswith("&>", self._at):
                self._redirect(simple)
            elif sign in ";&|()\n":
                cases += self._over(simple)
                if sign == ")" and closed and not opened and cases <= 0:
                    self._at += 1
                    return
                opened = max(0, opened + (sign == "(") - (sign == ")" and cases <= 0))
                self._at += 1
                if sign == "\n":
                    self._here_documents()
            else:
                simple.take(self._part())
        self._over(simple)
        if closed:
            raise _Unread

    def _over(self, simple: _Simple) -> int:
        """A simple command ends here; says how many `case` it opens beyond those it closes."""
        simple.end_word()
        self._pending += simple.heres
        words = simple.words
        self._found.append(words)
        for text in simple.strings:
            self._found += _Reading(text, self._depth + 1).all()
        simple.clear()
        return words.count("case") - words.count("esac")

    def _line_end(self) -> int:
        end = self._text.find("\n", self._at)
        return end if end >= 0 else len(self._text)

    def _redirect(self, simple: _Simple) -> None:
        """Where output goes or input comes from is no word of the command."""
        self._at += self._text[self._at] == "&"
        if self._text[self._at + 1 : self._at + 2] == "(":  # a process: <( or >(
            self._at += 2
            self._inner()
            simple.take("/dev/fd/63")
            return
        found = _TO.match(self._text, self._at)
        self._at = found.end() if found else self._at + 1
        simple.redirect(found[0] if found else ">")

    def _part(self) -> str:
        """The next part of a word."""
        sign = self._text[self._at]
        self._at += 1
        if sign == "\\":
            self._at += 1
            return self._text[self._at - 1 : self._at].strip("\n")
        if sign == "'":
            return self._upto("'")
        if sign == '"':
            return self._quoted()
        if sign == "`":
            return self._backticks()
        if sign == "$":
            return self._dollar(quoted=False)
        found = _PLAIN.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return sign + (found[0] if found else "")

    def _upto(self, mark: str) -> str:
        end = self._text.find(mark, self._at)
        if end < 0:
            raise _Unread
        text, self._at = self._text[self._at : end], end + 1
        return text

    def _quoted(self) -> str:
        parts: list[str] = []
        while self._at < len(self._text):
            sign = self._text[self._at]
            self._at += 1
            if sign == '"':
                return "".join(parts)
            if sign == "\\":
                after = self._text[self._at : self._at + 1]
                self._at += 1
                parts.append(after.strip("\n") if after in _ESCAPABLE else f"\\{after}")
            elif sign == "`":
                parts.append(self._backticks())
            elif sign == "$":
                parts.append(self._dollar(quoted=True))
            else:
                found = _IN_QUOTES.match(self._text, self._at)
                self._at = found.end() if found else self._at
                parts.append(sign + (found[0] if found else ""))
        raise _Unread

    def _dollar(self, *, quoted: bool) -> str:
        after = self._text[self._at : self._at + 1]
        if after == "(":
            self._at += 1
            self._inner()
            return "$()"
        if after == "'" and not quoted:
            self._at += 1
            return self._escaped()
        if after == '"' and not quoted:
            return ""  # a text to be translated: quoted as any other
        return "$"

    def _inner(self) -> None:
        """A substitution: its commands are read here, up to its parenthesis."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _Unread
        self._commands(closed=True)
        self._depth -= 1

    def _backticks(self) -> str:
        start = self._at
        while (sign := self._text[self._at : self._at + 1]) != "`":
            if not sign:
                raise _Unread
            self._at += 2 if sign == "\\" else 1
        text = self._text[start : self._at]
        self._at += 1
        self._found += _Reading(re.sub(r"\\([`\\$])", r"\1", text), self._depth + 1).all()
        return "$()"

    def _escaped(self) -> str:
        """What stands in $'…', with the signs that its escapes mean."""
        start = self._at
        while (sign := self._text[self._at : self._at + 1]) != "'":
            if not sign:
                raise _Unread
            self._at += 2 if sign == "\\" else 1
        text = self._text[start : self._at]
        self._at += 1
        try:
            return codecs.decode(text.encode("latin-1", "backslashreplace"), "unicode_escape")
        except ValueError:
            return text

    def _here_documents(self) -> None:
        """A here-document may be a script, and may hold substitutions: both readings count."""
        pending, self._pending = self._pending, []
        for end, tabs in pending:
            lines: list[str] = []
            while self._at < len(self._text):
                line = self._text[self._at : self._line_end()]
                self._at = self._line_end() + 1
                if (line.lstrip("\t") if tabs else line) == end:
                    break
                lines.append(line)
            body = "\n".join(lines)
            self._found += split_roughly(body)
            self._found += commands_of(body, self._depth + 1)


class _Simple:
    """One simple command as it grows."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """The next one."""
        self.words: Words = []
        self.heres: list[tuple[str, bool]] = []
        self.strings: list[str] = []
        """Texts that it is given as its input."""
        self._word: str | None = None
        self._target = ""

    @property
    def in_word(self) -> bool:
        """Whether a word has begun."""
        return self._word is not None

    def take(self, part: str) -> None:
        """A part of a word; an empty one begins a word, too."""
        self._word = (self._word or "") + part

    def redirect(self, sign: str) -> None:
        """The next word is where to; a number right before it is a descriptor."""
        word = self._word or ""
        if word.isdigit() or (word.startswith("{") and word.endswith("}")):
            self._word = None
        self.end_word()
        self._target = sign

    def end_word(self) -> None:
        """A word is whole."""
        if self._word is None:
            return
        word, self._word = self._word, None
        target, self._target = self._target, ""
        if not target:
            self.words.append(word)
        elif target == "<<<":
            self.strings.append(word)
        elif target.startswith("<<"):
            self.heres.append((word, target.endswith("-")))
