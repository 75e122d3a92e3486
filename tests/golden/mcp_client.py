"""A client of MCP that is the agent of a run: prints what the server answers to each request.

`of_server` starts it with the requests as lines of JSON in a file.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def main(requests: str) -> None:
    """Ask one request after the other, and end the server by closing its input."""
    with subprocess.Popen(
        ["truegreen", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin
        assert server.stdout
        for line in Path(requests).read_text().splitlines():
            server.stdin.write(f"{line}\n")
            server.stdin.flush()
            sys.stdout.write(server.stdout.readline())
        server.stdin.close()


if __name__ == "__main__":
    main(sys.argv[1])
