"""Write the reference pages anew: `python -m tests.docs`, or `make docs`."""

from __future__ import annotations

import sys

from tests.docs.reference import FOLDER, made


def main() -> int:
    """Write what is not as it should be, and say which."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    wanted = made()
    stale = [name for name, text in wanted.items() if not (FOLDER / name).is_file()]
    stale += [n for n, t in wanted.items() if n not in stale and (FOLDER / n).read_text() != t]
    for name in stale:
        (FOLDER / name).write_text(wanted[name])
    sys.stdout.write("".join(f"wrote docs/reference/{name}\n" for name in stale) or "up to date\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
