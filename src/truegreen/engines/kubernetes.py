"""Kubernetes: every order is a Job with one pod that is never started again by our wish.

Plain HTTPS to the API, with the token of a service account; the official client would bring 27
packages for four requests. What a pod needs to know comes from a Secret of the cluster: nothing of
it stands in a manifest.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from truegreen.contract.engines import Engine
from truegreen.engines.seam import Order, Seen
from truegreen.errors import Refused, Unavailable
from truegreen.facts import JobWord

if TYPE_CHECKING:
    import httpx2

_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_MANAGED = {"app.kubernetes.io/managed-by": "truegreen"}
_LABELS = "truegreen/"
_SECONDS = 15.0
_KEPT_SECONDS = 600
_PAGE = 500
_PAGES = 40
_CREATED, _TAKEN, _EXPIRED, _ABSENT = 201, 409, 410, 404
_NOT_THIS = (400, 409, 413, 422)
"""Refusals that are about one job; any other would meet the next one, too."""
_LOOPBACK = ("http://127.0.0.1:", "http://localhost:", "http://[::1]:")


class Kubernetes:
    """A namespace of a cluster."""

    def __init__(self, settings: Engine, environ: Mapping[str, str]) -> None:
        self._settings, self._environ = settings, environ
        host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
        self._api = settings.api.rstrip("/") or (f"https://{host}:{port or 443}" if host else "")
        self._open: httpx2.Client | None = None

    def check(self) -> None:
        """What a pod can't do without has to be set."""
        settings = self._settings
        if not self._api:
            raise Refused('kubernetes: this is no pod of a cluster: set [engine] api = "https://…"')
        if not self._api.startswith(("https://", *_LOOPBACK)):
            raise Refused("kubernetes: [engine] api has to be https://, or a proxy on loopback")
        for key, what in (
            ("image", "an image with truegreen and the agent in it"),
            ("secret", "a Secret whose TRUEGREEN_STORE is the address of the store"),
        ):
            if not getattr(settings, key):
                raise Refused(f"kubernetes: [engine] {key} is needed: {what}")
        if settings.env:
            raise Refused("kubernetes: [engine] env is not used: pods get the keys of the Secret")

    def submit(self, order: Order) -> str:
        """Create the Job. Its name is the order's, so that asking twice makes one."""
        name = _name(order)
        answer = self._ask("POST", self._jobs, json=self._manifest(order, name))
        if answer.status_code == _TAKEN and _reason(answer) == "AlreadyExists":
            return name
        if answer.status_code != _CREATED:
            raise _problem(answer)
        return name

    def _manifest(self, order: Order, name: str) -> dict[str, Any]:
        """What is set for pods, and over it what truegreen can't do without."""
        settings = self._settings
        marks = {**_MANAGED, f"{_LABELS}task": order.task, f"{_LABELS}job": order.job}
        container = {
            **settings.container,
            "name": "attempt",
            "image": settings.image,
            "command": list(order.argv),
            "envFrom": [
                *settings.container.get("envFrom", []),
                {"secretRef": {"name": settings.secret}},
            ],
        }
        selector = {f"{_LABELS}{label}": "true" for label in order.labels}
        pod = {
            **settings.pod,
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "containers": [*settings.pod.get("containers", []), container],
            "nodeSelector": {**settings.pod.get("nodeSelector", {}), **selector},
        }
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "labels": marks},
            "spec": {
                "backoffLimit": 0,
                "completions": 1,
                "parallelism": 1,
                "activeDeadlineSeconds": order.seconds,
                "ttlSecondsAfterFinished": _KEPT_SECONDS,
                "template": {"metadata": {"labels": marks}, "spec": pod},
            },
        }

    def look(self, handles: Iterable[str]) -> dict[str, Seen]:
        """All Jobs of ours in the namespace, page by page."""
        found = {job["metadata"]["name"]: _seen(job.get("status", {})) for job in self._listed()}
        unheard = Seen(JobWord.GONE, "the API knows it no more")
        return {handle: found.get(handle, unheard) for handle in handles}

    def _listed(self) -> Iterator[dict[str, Any]]:
        selector = ",".join(f"{key}={value}" for key, value in _MANAGED.items())
        asked: dict[str, str | int] = {"labelSelector": selector, "limit": _PAGE}
        for _ in range(_PAGES):
            answer = self._ask("GET", self._jobs, params=asked)
            if answer.status_code == _EXPIRED:  # the list has changed too much meanwhile
                asked.pop("continue", None)
                continue
            if not answer.is_success:
                raise Unavailable(_problem(answer).message)
            page = msgspec.json.decode(answer.content)
            yield from page["items"]
            if not page.get("metadata", {}).get("continue"):
                return
            asked["continue"] = page["metadata"]["continue"]
        raise Unavailable("kubernetes does not come to the end of its list of jobs")

    def cancel(self, handle: str) -> None:
        """Delete the Job after its pod; one that is not there is no error."""
        body = {"propagationPolicy": "Foreground"}
        answer = self._ask("DELETE", f"{self._jobs}/{handle}", json=body)
        if not answer.is_success and answer.status_code != _ABSENT:
            raise _problem(answer)

    @property
    def _jobs(self) -> str:
        return f"/apis/batch/v1/namespaces/{self._settings.namespace}/jobs"

    def _ask(self, method: str, path: str, **request: Any) -> httpx2.Response:
        import httpx2  # noqa: PLC0415 - it takes a while to load

        try:
            return self._client().request(method, path, headers=self._headers(), **request)
        except (httpx2.HTTPError, OSError) as error:
            words = str(error) or type(error).__name__
            raise Unavailable(f"kubernetes does not answer: {words}") from error

    def _client(self) -> httpx2.Client:
        import ssl  # noqa: PLC0415 - as above

        import httpx2  # noqa: PLC0415 - as above

        if self._open is None:
            authority = self._settings.ca_file or f"{_ACCOUNT}/ca.crt"
            known = authority if os.path.exists(authority) else None
            verify = ssl.create_default_context(cafile=known)
            self._open = httpx2.Client(
                base_url=self._api, verify=verify, timeout=_SECONDS, trust_env=False
            )
        return self._open

    def _headers(self) -> dict[str, str]:
        """The token is read each time: the cluster changes it every hour."""
        file = self._settings.token_file or f"{_ACCOUNT}/token"
        try:
            with open(file, encoding="ascii") as stream:
                return {"Authorization": f"Bearer {stream.read().strip()}"}
        except FileNotFoundError:
            if self._settings.token_file:
                raise
            return {}  # a proxy on loopback speaks for its user


def _name(order: Order) -> str:
    return order.job.replace("_", "-")


def _seen(status: dict[str, Any]) -> Seen:
    """A Job that is about to end is not gone before its condition says so."""
    for condition in status.get("conditions", []):
        if condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True":
            words = [condition["type"].lower(), condition.get("reason"), condition.get("message")]
            return Seen(JobWord.GONE, ": ".join(filter(None, words)))
    if not status.get("active"):
        return Seen(JobWord.QUEUED, "pending, no pod yet")
    if status.get("ready"):
        return Seen(JobWord.RUNNING, "running")
    return Seen(JobWord.QUEUED, "pending, its pod is not ready")


def _problem(answer: httpx2.Response) -> Refused | Unavailable:
    words = f"{answer.status_code} {_said(answer).get('message') or answer.reason_phrase}".strip()
    if answer.status_code in _NOT_THIS:
        return Refused(f"kubernetes refused it: {words}")
    return Unavailable(f"kubernetes does not serve us: {words}")


def _reason(answer: httpx2.Response) -> str:
    return str(_said(answer).get("reason", ""))


def _said(answer: httpx2.Response) -> dict[str, Any]:
    """A Status of the API; what stands before it may answer with anything."""
    try:
        return msgspec.json.decode(answer.content, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
