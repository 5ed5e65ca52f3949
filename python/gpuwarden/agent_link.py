"""HTTP with the agent over one kept connection. Used by one thread at a time; `abort` may come from another."""
from __future__ import annotations

import gzip
import http.client
import json
import logging
import os
import socket
from typing import Any, Dict, NamedTuple, Optional
from urllib.parse import urlsplit

from ._version import __version__
from .settings import Settings

log = logging.getLogger("gpuwarden")

#: Compressing for a socket of the same host costs more than it saves.
_GZIP_FROM_BYTES = 4096
_ANSWER_LIMIT_BYTES = 32 * 1024 * 1024
_FIRST_WORDS = 60


class Unreachable(Exception):
    """Nobody answered, or (`answered`) not with what was asked for. `sent`: the request may still have been carried out."""

    def __init__(self, reason: str, sent: bool, answered: bool = False) -> None:
        super().__init__(reason)
        self.sent = sent
        self.answered = answered


class Answer(NamedTuple):
    status: int
    body: Any
    retry_after: Optional[float]
    #: Who answered, and the first words: for what is not an agent's answer.
    sender: str = ""
    #: The body where it is no JSON.
    text: Optional[str] = None

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def code(self) -> str:
        """The agent's error code, whose meaning never changes; empty when there is none."""
        error = self.body.get("error") if isinstance(self.body, dict) else None
        return str(error.get("code", "")) if isinstance(error, dict) else ""

    @property
    def message(self) -> str:
        error = self.body.get("error") if isinstance(self.body, dict) else None
        return str(error.get("message", "")) if isinstance(error, dict) else ""


class AgentLink:
    def __init__(self, settings: Settings, timeout: float = 5.0, trace_id: Optional[str] = None) -> None:
        self._settings = settings
        self.timeout = timeout
        self._trace_id = trace_id if trace_id and len(trace_id) == 32 else None
        self._connection: Optional[http.client.HTTPConnection] = None

    def get(self, path: str) -> Answer:
        return self._ask("GET", path, None, {})

    def delete(self, path: str) -> Answer:
        return self._ask("DELETE", path, None, {})

    def post_json(self, path: str, value: Any) -> Answer:
        return self._ask("POST", path, json.dumps(value).encode("utf-8"), {"Content-Type": "application/json"})

    def post_lines(self, path: str, lines: bytes) -> Answer:
        headers = {"Content-Type": "application/x-ndjson"}
        if len(lines) >= _GZIP_FROM_BYTES and not self._settings.is_loopback:
            lines = gzip.compress(lines, 3)
            headers["Content-Encoding"] = "gzip"
        return self._ask("POST", path, lines, headers)

    def abort(self) -> None:
        """Ends a request that another thread is waiting for."""
        connection = self._connection
        sock = getattr(connection, "sock", None)
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                return

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _ask(self, method: str, path: str, body: Optional[bytes], headers: Dict[str, str]) -> Answer:
        # The other side may have closed a kept connection in the meantime: only that is worth a second attempt.
        for attempt in (0, 1):
            fresh = self._connection is None
            try:
                return self._ask_once(method, path, body, headers)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                stale = isinstance(error, (ConnectionError, http.client.RemoteDisconnected, http.client.CannotSendRequest))
                if fresh or attempt == 1 or not stale:
                    refused = fresh and isinstance(error, ConnectionRefusedError)
                    raise Unreachable("%s: %s" % (type(error).__name__, error), sent=not refused) from error
        raise AssertionError("unreachable")

    def _ask_once(self, method: str, path: str, body: Optional[bytes], headers: Dict[str, str]) -> Answer:
        connection = self._connection or self._open()
        if connection.sock is not None:
            connection.sock.settimeout(self.timeout)
        connection.request(method, path, body=body, headers=self._headers(headers))
        response = connection.getresponse()
        raw = response.read(_ANSWER_LIMIT_BYTES)
        if response.will_close:
            self.close()
        parsed: Any = None
        text: Optional[str] = None
        try:
            parsed = json.loads(raw.decode("utf-8")) if raw else None
        except ValueError:
            text = raw.decode("utf-8", "replace")
        log.debug("gpuwarden: %s %s: HTTP %d", method, path, response.status)
        return Answer(response.status, parsed, _seconds(response.getheader("Retry-After")), _sender(response, raw), text)

    def _open(self) -> http.client.HTTPConnection:
        parts = urlsplit(self._settings.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.hostname or "127.0.0.1", parts.port, timeout=min(self.timeout, 2.0))
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection = connection
        return connection

    def _headers(self, extra: Dict[str, str]) -> Dict[str, str]:
        headers = {"User-Agent": "gpuwarden-python/" + __version__, "Accept": "application/json"}
        if self._settings.token:
            headers["Authorization"] = "Bearer " + self._settings.token
        if self._trace_id:
            headers["traceparent"] = "00-%s-%s-01" % (self._trace_id, os.urandom(8).hex())
        headers.update(extra)
        return headers


def _sender(response: http.client.HTTPResponse, raw: bytes) -> str:
    server = response.getheader("Server")
    words = raw[:_FIRST_WORDS].decode("utf-8", "replace")
    text = "HTTP %d" % response.status + (" from %s" % server[:_FIRST_WORDS] if server else "") + (": %s" % words if words else "")
    return "".join(sign if sign.isprintable() else " " for sign in text)


def _seconds(text: Optional[str]) -> Optional[float]:
    try:
        return max(0.0, float(text)) if text else None
    except ValueError:
        return None
