"""The door of `truegreen` and `tg`: what needs no command is answered here, without loading one.

It also has the last word about standard output: a closed pipe is no error worth a sentence.
"""

from __future__ import annotations

import os
import sys

INTERRUPTED = 130
PIPE_CLOSED = 141
_DOORS = ("hook", "guard", "credential")
"""Commands that agents and their clients call at every step."""


def main() -> int:
    """Run the command line and leave with its exit status."""
    status = _guarded()
    sys.stderr.flush()
    # The kernel takes down what is left in no time; the interpreter needs 14 ms for it.
    os._exit(status)


def _guarded() -> int:
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # started with a closed descriptor
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    try:
        status = _answer(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return _mute(PIPE_CLOSED)
    except ModuleNotFoundError as error:
        sys.stderr.write(f"truegreen: {error.name} is missing: the installation is not whole\n")
        sys.stderr.write("next: pip install --force-reinstall truegreen, or the same with pipx\n")
        return 5
    except OSError as error:
        sys.stderr.write(f"truegreen: the output can't be written: {error.strerror}\n")
        return _mute(5)
    return status


def _answer(words: list[str]) -> int:
    if words in (["--version"], ["version"]):
        from truegreen import __version__  # noqa: PLC0415 - measured: nothing else is loaded

        sys.stdout.write(f"truegreen {__version__}\n")
        return 0
    completing = "_TRUEGREEN_COMPLETE" in os.environ or "_TG_COMPLETE" in os.environ
    if words in ([], ["--help"], ["-h"]) and not completing:
        from truegreen.faces.cli.catalogue import root_help  # noqa: PLC0415 - no click

        (sys.stdout if words else sys.stderr).write(root_help())
        return 0 if words else 2
    if words and words[0] in _DOORS and not completing:
        from truegreen.doors.guard import enter  # noqa: PLC0415 - no click

        enter(words)  # comes back only where a person asks for more
    import gc  # noqa: PLC0415 - built in

    gc.disable()  # loading makes no garbage; who has loaded the command switches it on again
    _load_msgspec()
    if not completing:
        from truegreen.faces.cli.declared import run_plain  # noqa: PLC0415 - no click

        status = run_plain(words)
        if status is not None:
            return status
    from truegreen.faces.cli.root import run  # noqa: PLC0415 - click takes 40 ms

    return run(words)


def _load_msgspec() -> None:
    """Without typing_extensions, where it is installed: that takes 8 ms, and typing has it all."""
    if "msgspec" in sys.modules:
        return
    name = "typing_extensions"
    sys.modules[name] = None  # type: ignore[assignment] # as if it were not installed
    try:
        import msgspec  # noqa: F401, PLC0415 - it is content with what typing has
    finally:
        del sys.modules[name]


def _mute(status: int) -> int:
    """Let the interpreter's own last flush go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    return status


if __name__ == "__main__":
    sys.exit(main())
