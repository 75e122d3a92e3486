"""What an agent's environment holds: built from an allow-list, never inherited as it is.

Pure: a mapping goes in, a mapping and the secrets among its values come out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from truegreen.patterns import late

PLAIN = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "COLORTERM", "TZ", "TMPDIR"),
        *("LANG", "LANGUAGE", "VIRTUAL_ENV", "CONDA_PREFIX", "JAVA_HOME", "GOPATH", "NVM_DIR"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"),
        "NODE_EXTRA_CA_CERTS",
    }
)
"""What programs need to find themselves, their language and the network."""
_FAMILIES = ("LC_", "XDG_")
_SECRET_NAME = late(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)
_SHORTEST_SECRET = 8


def agent_environment(
    environ: Mapping[str, str], passes: Iterable[str], own: Mapping[str, str]
) -> tuple[dict[str, str], tuple[bytes, ...]]:
    """The environment of an agent, and which of its values must not show in its output.

    `passes` are further names, or beginnings of names that end with `*`; `own` is ours and wins.
    Our own variables are never handed on: a run inside a run would speak for the outer one.
    """
    words = tuple(passes)
    families = (*_FAMILIES, *(word[:-1] for word in words if word.endswith("*")))
    given = {
        name: value
        for name, value in environ.items()
        if (name in PLAIN or name in words or name.startswith(families))
        and not name.startswith("TRUEGREEN_")
    }
    return {**given, **own}, secret_values(given)


def secret_values(environ: Mapping[str, str]) -> tuple[bytes, ...]:
    """The values whose names say that nobody else should see them."""
    values = (
        value.encode("utf-8", "surrogateescape")
        for name, value in environ.items()
        if name not in PLAIN and _SECRET_NAME.search(name)
    )
    return tuple(value for value in values if len(value) >= _SHORTEST_SECRET)
