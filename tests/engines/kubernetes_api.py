"""A double of the Kubernetes API for Jobs, on loopback: it answers as the API does, and runs none.

Create, list by label selector with pages, delete with a propagation policy; conflicts, what is
absent, expired pages, throttling and faults. A test moves the status of a Job itself.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

FIXED = {"backoffLimit", "completions", "parallelism", "template"}


class Api:
    """What the cluster has."""

    def __init__(self, namespace: str = "green", token: str = "t0ken") -> None:  # noqa: S107
        self.namespace, self.token = namespace, token
        self.jobs: dict[str, dict[str, Any]] = {}
        self.asked: list[tuple[str, str, Any]] = []
        self.faults: list[tuple[int, str]] = []
        """Answers that come instead, one for each request."""
        self.page = 500
        self.expires = False
        self.url = ""

    def answer(self, method: str, target: str, token: str, body: Any) -> tuple[int, Any]:
        """One request."""
        self.asked.append((method, target, body))
        parts = urlsplit(target)
        base = f"/apis/batch/v1/namespaces/{self.namespace}/jobs"
        if self.faults:
            return _status(*self.faults.pop(0))
        if token != f"Bearer {self.token}":
            return _status(401, "Unauthorized")
        if not parts.path.startswith(base):
            return _status(404, "NotFound", 'namespaces "x" not found')
        name = parts.path.removeprefix(base).strip("/")
        if method == "POST":
            return self._create(body)
        if method == "DELETE":
            return self._delete(name, body)
        return self._list({key: values[0] for key, values in parse_qs(parts.query).items()})

    def _create(self, body: dict[str, Any]) -> tuple[int, Any]:
        name = body["metadata"]["name"]
        if name in self.jobs:
            return _status(409, "AlreadyExists", f'jobs.batch "{name}" already exists')
        if not set(body["spec"]) >= FIXED or body["spec"]["template"]["spec"].get(
            "restartPolicy"
        ) not in ("Never", "OnFailure"):
            return _status(422, "Invalid", "spec.template.spec.restartPolicy: Required value")
        self.jobs[name] = {**body, "status": {}}
        return 201, self.jobs[name]

    def _delete(self, name: str, body: dict[str, Any]) -> tuple[int, Any]:
        if name not in self.jobs:
            return _status(404, "NotFound", f'jobs.batch "{name}" not found')
        if body["propagationPolicy"] == "Foreground":  # it stays until its pod is gone
            self.jobs[name]["metadata"]["deletionTimestamp"] = "now"
            return 200, self.jobs[name]
        del self.jobs[name]
        return 200, {"kind": "Status", "status": "Success"}

    def _list(self, query: dict[str, str]) -> tuple[int, Any]:
        wanted = dict(pair.split("=") for pair in query.get("labelSelector", "").split(",") if pair)
        begin = int(query.get("continue", 0))
        if begin and self.expires:
            self.expires = False
            return _status(410, "Expired", "The provided continue parameter is too old")
        fit = [
            job
            for job in self.jobs.values()
            if wanted.items() <= job["metadata"].get("labels", {}).items()
        ]
        end = begin + min(self.page, int(query.get("limit", 500)))
        more = {"continue": str(end)} if end < len(fit) else {}
        return 200, {"kind": "JobList", "items": fit[begin:end], "metadata": more}


def _status(code: int, reason: str, message: str = "") -> tuple[int, Any]:
    kind = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
    return code, {**kind, "code": code, "reason": reason, "message": message}


@contextmanager
def served(api: Api) -> Iterator[Api]:
    """The API answers until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            token = self.headers.get("Authorization", "")
            code, document = api.answer(self.command, self.path, token, body)
            text = json.dumps(document).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_DELETE = _answer  # noqa: N815 - the library's own names

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    api.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
