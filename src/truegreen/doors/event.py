"""What `hook.py` does at one event of a client, by `main([CLIENT, EVENT, STATE_DIR])`.

A file that stands alone and loads no library, for it is started at every tool call. Inside a run it
asks the run's door; elsewhere it looks whether a mark names the conversation. It knows no client's
JSON beyond where an id stands, and writes nothing about its environment. A doubt is a no.
"""

import posix
import sys
import time

DECIDING = (
    *("PreToolUse", "UserPromptSubmit", "UserPromptExpansion", "SessionStart", "SubagentStart"),
    *("PermissionRequest", "TaskCreated"),
    *("BeforeTool", "BeforeAgent", "BeforeModel", "BeforeToolSelection"),
)
"""Events whose answer lets something happen."""
AFTERWARDS = ("PostToolUse", "PostToolUseFailure", "PostToolBatch", "AfterTool", "AfterModel")
"""Events behind which a client can be made to end."""
NOTIFYING = (
    *("Stop", "StopFailure", "SubagentStop", "SessionEnd", "Notification", "AfterAgent"),
    *("PreCompact", "PostCompact", "PreCompress", "TeammateIdle", "TaskCompleted"),
    *("InstructionsLoaded", "ConfigChange", "CwdChanged", "FileChanged", "PermissionDenied"),
)
"""Events that let nothing happen; a no to some of them would send an agent on."""
MESSAGING = (
    *(b"SendMessage", b"Task", b"Agent", b"send_input", b"send_message", b"resume_agent"),
    *(b"followup_task", b"assign_task", b"agent_send"),
)
_RESUME = (b"--resume", b"-r")
_OWN = (b"session_id", b"parent_session_id")
_INSIDE = b"agent_id"
ADDRESSEE = (b"to", b"recipient", b"resume", b"target", b"id", b"agent", b"agent_id")
FORWARDED = 1 << 20
_READ = 64 << 20
_HEAD = 2000
_LONGEST_NAME = 200
_NAME = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
_PACKED = b"="
_END = 60
_NOT_BRACES = bytes(set(range(256)) - set(b"{}[]"))
_BETWEEN = b"{}[],: \t\r\n+-.0123456789eEtrufalsn"
_BACKSLASH = 92
_SHORT = 100  # a socket's address has room for 107 bytes
_UNIX = _STREAM = 1
_PATH_ONLY = 0o10000000  # O_PATH

SCRIPT = f"{__file__.rpartition('/')[0]}/hook.py"
"""What clients are told to call; whoever tells them has had this file compiled by naming it."""

TERMINATED = "is terminated; it never acts again"
Answer = tuple[int, bytes, bytes]
YES: Answer = (0, b"", b"")


def main(words: list[str]) -> None:
    """Answer one event and leave; whatever goes wrong on the way is no yes."""
    client, event, state = (*words, "", "", "")[:3]
    why = b"truegreen: the hook failed, and nothing is allowed on a doubt\n"
    answer: Answer = (2, b"", why) if event in DECIDING else YES
    try:
        _beacon(client, event)
        payload, size = read_input()
        if in_run():
            state = _state_of(_own_socket()) or state
            answer = _inside(client, event, state, payload, size)
        else:
            answer = _outside(client, event, state, payload, size)
    except PermissionError:
        answer = no(client, event, _unreadable(client, state)) if event in DECIDING else YES
    finally:
        leave(answer)


def _unreadable(client: str, state: str) -> str:
    """What leads on where hooks for a whole machine look into a folder of one user."""
    doubt = f"you may not look into {state}/fenced, so nobody knows whether this is a dead session"
    way = "who installed the hooks can open it (chmod a+rx, and a+x on the folders above it)"
    return f"{doubt}; {way}, or take them out: truegreen install {client} --managed --uninstall"


def leave(answer: Answer) -> None:
    """Write an answer and be gone; the interpreter's own end would take longer than all of it."""
    try:
        for descriptor, text in ((1, answer[1]), (2, answer[2])):
            sent = 0
            while sent < len(text):
                sent += posix.write(descriptor, text[sent:])
    finally:
        posix._exit(answer[0])  # noqa: SLF001 - that is its name


def read_input() -> tuple[bytes, int]:
    """All of standard input as far as it is kept, and how much there was."""
    chunks: list[bytes] = []
    size = 0
    while True:
        try:
            chunk = posix.read(0, 1 << 20)
        except InterruptedError:
            continue
        except OSError:  # closed: nobody says anything
            chunk = b""
        if not chunk:
            return b"".join(chunks), size
        if size < _READ:
            chunks.append(chunk)
        size += len(chunk)


def no(client: str, event: str, why: str) -> Answer:
    """A refusal as the client understands it; where it can't refuse, it is told to end."""
    if event in AFTERWARDS or (client == "codex" and event == "SessionStart"):
        return 0, b'{"continue":false,"stopReason":%s}' % _quoted(why.encode()), b""
    return YES if event in NOTIFYING else (2, b"", b"truegreen: %s\n" % why.encode())


# -- inside a run ----------------------------------------------------------------------------------


def in_run() -> bool:
    """Whether a run's agent is around us. Its id alone says nothing: judges carry it, too."""
    ours = b"TRUEGREEN_SOCKET", b"TRUEGREEN_TOKEN_FILE", b"TRUEGREEN_FENCE"
    return any(name in posix.environ for name in ours)


def _inside(client: str, event: str, state: str, payload: bytes, size: int) -> Answer:
    try:
        return ask("hook", f"{client} {event}", _shortened(payload, size), size)
    except (OSError, ValueError) as error:
        run = posix.environ.get(b"TRUEGREEN_RUN", b"")
        if _is_fenced(state, run):
            _trip(state, (client, event), run, payload)
            return no(client, event, f"{_shown(run)} {TERMINATED}")
        if event not in DECIDING:
            return YES
        why = getattr(error, "strerror", None) or str(error) or "no answer"
        return no(client, event, f"the supervisor of this run does not answer ({why})")


def terminated_at(socket: bytes, kind: str, event: str, command: bytes = b"") -> str:
    """The run behind a socket if it is terminated, else nothing; leaves word of the call.

    For a supervisor that does not answer: it may have ended long before its run was terminated.
    """
    state = _state_of(socket)
    run = socket.rsplit(b"/", 3)[1] if state else b""
    try:
        if not _is_fenced(state, run):
            return ""
    except OSError:
        return ""  # that folder is not for us to look into: then nobody answers, and no more
    payload = b'{"command":%s}' % _quoted(command) if command else b""
    _trip(state, ("truegreen", event), run, payload, kind=kind)
    return _shown(run)


def _own_socket() -> bytes:
    return posix.environ.get(b"TRUEGREEN_SOCKET", b"")


def _state_of(socket: bytes) -> str:
    """The state directory in which a run has its socket; it is STATE/runs/RUN/FOLDER/NAME."""
    state, *rest = socket.rsplit(b"/", 4)
    is_ours = state and len(rest) == 4 and rest[0] == b"runs"  # noqa: PLR2004 - as above
    return state.decode("utf-8", "surrogateescape") if is_ours else ""


def _shortened(payload: bytes, size: int) -> bytes:
    """What the door gets to read: of what is too long its short texts, and nothing on a doubt."""
    if size <= FORWARDED:
        return payload
    found = texts(payload) if size == len(payload) else None
    if found is None:
        return b""
    top: list[bytes] = []
    given: list[bytes] = []
    for key, text in found:
        where, name = (given, key[11:]) if key.startswith(b"tool_input.") else (top, key)
        if len(key) + len(text) <= _HEAD:
            where.append(_quoted(name) + b":" + _quoted(text))
    short = b"{%s}" % b",".join([*top, b'"tool_input":{%s}' % b",".join(given)])
    return short if len(short) <= FORWARDED else b""


def ask(verb: str, words: str, payload: bytes, size: int) -> Answer:
    """Ask the door of this run: a line with sizes and token, then the bytes. Its answer is ours.

    OSError when there is no run here or nobody answers, ValueError when the answer makes no sense.
    """
    import _socket  # noqa: PLC0415 - outside of a run it is not needed

    token = _token()
    line = _socket.socket(_UNIX, _STREAM)
    _connect(line, _own_socket())
    head = f"\x01{verb} {len(payload)} {size} {token} {words}\n".encode()
    line.sendall(head + payload)
    chunks = []
    while chunk := line.recv(1 << 16):
        chunks.append(chunk)
    first, _, rest = b"".join(chunks).partition(b"\n")
    code, out, err = (int(word) for word in first.split())
    if out + err != len(rest):
        raise ValueError("its answer was cut off")
    return code, rest[:out], rest[out:]


def _token() -> str:
    descriptor = posix.open(posix.environ.get(b"TRUEGREEN_TOKEN_FILE", b""), posix.O_RDONLY)
    token = posix.read(descriptor, 1000).decode("ascii").strip()
    posix.close(descriptor)
    if not token or " " in token:
        raise ValueError("the token of this run can't be read")
    return token


def _connect(line, path: bytes) -> None:  # type: ignore[no-untyped-def] # noqa: ANN001 - _socket's
    if len(path) > _SHORT:
        folder, _, name = path.rpartition(b"/")
        descriptor = posix.open(folder, _PATH_ONLY | posix.O_DIRECTORY | posix.O_CLOEXEC)
        path = b"/proc/self/fd/%d/%s" % (descriptor, name)
    line.connect(path)


# -- elsewhere -------------------------------------------------------------------------------------


def _outside(client: str, event: str, state: str, payload: bytes, size: int) -> Answer:
    if not _is_there(f"{state}/fenced"):
        return YES  # nobody was ever terminated here
    found = texts(payload) if size == len(payload) else None
    own = [
        posix.environ.get(b"TRUEGREEN_RUN", b""),
        posix.environ.get(b"CLAUDE_CODE_SESSION_ID", b""),
        *_taken_up(posix.environ.get(b"CLAUDE_PID", b"")),
    ]
    inside: list[bytes] = []
    others: list[bytes] = []
    dead: list[tuple[bytes, bytes]] = []
    if found is None:
        # It can't be read: then a fenced name anywhere in it is one too many.
        dead = _named_in(payload, posix.listdir(f"{state}/fenced".encode()))
    else:
        own += [value for key, value in found if key in _OWN]
        inside = [value for key, value in found if key == _INSIDE]
        others = _addressees(found)
    dead += [(name, name) for name in (*own, *inside) if _is_fenced(state, name)]
    dead += [found for name in inside for found in _dead_inside(state, own, name)]
    if dead:
        _trip(state, (client, event), dead[0][0], payload)
        return no(client, event, f"{_shown(dead[0][1])} {TERMINATED}")
    for name in others if event in DECIDING else ():
        if _is_fenced(state, name) or _dead_inside(state, own, name):
            return no(client, event, f"{_shown(name)} is terminated; nobody reaches it any more")
    return YES


def _shown(name: bytes) -> str:
    return name.decode("utf-8", "replace")


def _named_in(payload: bytes, marks: list[bytes]) -> list[tuple[bytes, bytes]]:
    """The marked names that stand somewhere in a text; of one in a conversation, both do."""
    found = []
    for mark in marks:
        packed = mark[:1] == _PACKED
        parts = bytes.fromhex(mark[1:].decode()).split(b"\0") if packed else [mark]
        if all(part in payload for part in parts):
            found.append((parts[0], parts[-1]))
    return found


def _taken_up(pid: bytes) -> list[bytes]:
    """What a client was started to go on with: a fork of a conversation has a name of its own."""
    if not pid.isdigit():
        return []
    try:
        descriptor = posix.open(b"/proc/%s/cmdline" % pid, posix.O_RDONLY)
        words = posix.read(descriptor, 1 << 16).split(b"\0")
        posix.close(descriptor)
    except OSError:
        return []  # another system, or the client has gone meanwhile
    found = [word[9:] for word in words if word.startswith(b"--resume=")]
    return found + [words[n + 1] for n in range(len(words) - 1) if words[n] in _RESUME]


def _addressees(found: list[tuple[bytes, bytes]]) -> list[bytes]:
    """Whom a call is for, if it is one that speaks to an agent."""
    tools = [value for key, value in found if key == b"tool_name"]
    if not any(tool.rpartition(b"__")[2] in MESSAGING for tool in tools):
        return []
    asked = [b"tool_input." + key for key in ADDRESSEE]
    return [value for key, value in found if key in asked]


def marked(name: bytes, within: bytes = b"") -> str:
    """The mark of a name, or of one that only a conversation knows; what is no file name is packed.

    Of a very long one both ends count.
    """
    whole = within + b"\0" + name if within else name
    if len(whole) <= _LONGEST_NAME and not whole.translate(None, _NAME) and whole.strip(b"."):
        return whole.decode()
    if len(whole) > 2 * _END:
        whole = whole[:_END] + b"\0" + whole[-_END:]
    return _PACKED.decode() + whole.hex()


def _is_fenced(state: str, name: bytes) -> bool:
    return bool(name) and _is_there(f"{state}/fenced/{marked(name)}")


def _dead_inside(state: str, own: list[bytes], name: bytes) -> list[tuple[bytes, bytes]]:
    """Which of our own conversations know somebody by that name who is terminated."""
    around = [each for each in own if each and name]
    return [(each, name) for each in around if _is_there(f"{state}/fenced/{marked(name, each)}")]


def _is_there(path: str) -> bool:
    """Whether there is such a file; one that can't be looked at is a doubt, and stays an error."""
    try:
        posix.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def texts(data: bytes) -> list[tuple[bytes, bytes]] | None:
    """The texts at the top of a JSON object by their keys, and those of `tool_input`.

    `None` if it is no whole object. What stands inside of texts and deeper is passed over, so that
    nobody answers for an id that is only spoken about; a key that comes twice is there twice.
    """
    found: list[tuple[bytes, bytes]] = []
    depth = at = 0
    top = inner = b""
    while True:
        quote = data.find(b'"', at)
        gap = data[at:quote] if quote >= 0 else data[at:]
        depth = _deeper(depth, gap, last=quote < 0) if at or _opens(gap) else -1
        at = _end_of_text(data, quote) if quote >= 0 and depth > 0 else 0
        if at == 0:
            return found if quote < 0 and depth == 0 else None
        if depth > 2:  # noqa: PLR2004 - the top, and one below it
            continue
        text = _plain(data[quote + 1 : at - 1])
        if data[at : at + 16].lstrip()[:1] == b":":
            top, inner = (text, b"") if depth == 1 else (top, text)
        elif depth == 1:
            found.append((top, text))
        elif top == b"tool_input" and inner:
            found.append((b"tool_input." + inner, text))


def _opens(gap: bytes) -> bool:
    return gap.lstrip()[:1] == b"{"


def _deeper(depth: int, gap: bytes, *, last: bool) -> int:
    """How deep it is behind what stands between two texts; -1 where no JSON looks like that."""
    if gap.translate(None, _BETWEEN):
        return -1
    for brace in gap.translate(None, _NOT_BRACES):
        depth += 1 if brace in b"{[" else -1
        if depth < 0 or (depth == 0 and not last):
            return -1
    return depth


def _end_of_text(data: bytes, quote: int) -> int:
    """Behind the quote that closes a text; 0 if none does."""
    end = quote
    while (end := data.find(b'"', end + 1)) >= 0:
        before = end
        while data[before - 1] == _BACKSLASH:
            before -= 1
        if (end - before) % 2 == 0:
            return end + 1
    return 0


def _plain(raw: bytes) -> bytes:
    """A text without its escapes, as far as ids need it; a long one is none."""
    if b"\\" not in raw or len(raw) > 6 * _LONGEST_NAME:
        return raw
    import _codecs  # noqa: PLC0415 - built in and loaded already

    try:
        text = raw.replace(b"\\/", b"/").decode()
        text = _codecs.unicode_escape_decode(_codecs.raw_unicode_escape_encode(text)[0])[0]
        units = _codecs.utf_16_le_encode(text, "surrogatepass")[0]  # two escapes may be one sign
        return _codecs.utf_16_le_decode(units, "surrogatepass")[0].encode("utf-8", "surrogatepass")
    except ValueError:
        return raw


# -- the tripwire ----------------------------------------------------------------------------------


def _trip(
    state: str, asked: tuple[str, str], name: bytes, payload: bytes, *, kind: str = "hook"
) -> None:
    """Leave word that somebody acts who must not; a word that can't be left changes no answer."""
    folder = f"{state}/tripped"
    run = posix.environ.get(b"TRUEGREEN_RUN", b"")
    fields = (kind.encode(), asked[0].encode(), asked[1].encode(), run, name, payload[:_HEAD])
    text = b'{"kind":%s,"client":%s,"event":%s,"run":%s,"session":%s,"payload":%s}\n' % tuple(
        _quoted(field) for field in fields
    )
    stem = f"{folder}/{time.time_ns()}-{posix.getpid()}"
    try:
        if not _is_there(folder):
            posix.mkdir(folder, 0o700)
        flags = posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_NOFOLLOW
        descriptor = posix.open(f"{stem}.part", flags, 0o600)
        posix.write(descriptor, text)
        posix.close(descriptor)
        posix.rename(f"{stem}.part", f"{stem}.json")
    except OSError:
        return


def _beacon(client: str, event: str) -> None:
    """Say that the hook was called, to whoever tries it out."""
    path = posix.environ.get(b"TRUEGREEN_BEACON")
    if not path:
        return
    try:
        descriptor = posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND, 0o600)
        posix.write(descriptor, f"{client} {event}\n".encode())
        posix.close(descriptor)
    except OSError:
        return


def _quoted(text: bytes) -> bytes:
    """A text of JSON."""
    shown = [
        f"\\u{ord(mark):04x}" if mark < " " or mark in '"\\' else mark
        for mark in text.decode("utf-8", "replace")
    ]
    return b'"%s"' % "".join(shown).encode()


if __name__ == "__main__":
    main(sys.argv[1:])
