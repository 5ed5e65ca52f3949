"""A stand-in for the agent that misbehaves on request. What a healthy agent does is tested against the real one."""
from __future__ import annotations

import gzip
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Dict, List, Optional, Tuple


class Stand:
    def __init__(self, port: int = 0) -> None:
        self.runs: Dict[str, Dict[str, Any]] = {}
        self.steps: Dict[Tuple[str, int, int], Dict[str, Any]] = {}
        self.duplicates = 0
        self.ends: List[Dict[str, Any]] = []
        self.reports: List[Dict[str, Any]] = []
        self.headers: List[Dict[str, str]] = []
        #: Answer every request with this status.
        self.status: Optional[int] = None
        #: Answer every request with this, as something that is no agent would.
        self.stranger: Optional[Tuple[int, bytes]] = None
        #: Acknowledge so many lines fewer than there were.
        self.forgets = 0
        #: Take more than so many lines as too large.
        self.most_lines = 10**9
        #: Set: requests wait for it.
        self.gate: Optional[threading.Event] = None
        #: Refuse steps with this value of `step`.
        self.bad_step: Optional[int] = None
        stand = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer(200, {"status": "ok"})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                if stand.gate is not None:
                    stand.gate.wait(30)
                stand.headers.append(dict(self.headers.items()))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                if stand.stranger is not None:
                    self._send(*stand.stranger)
                elif stand.status is not None:
                    self._answer(stand.status, {"error": {"code": "told_to", "message": "told to"}})
                else:
                    self._answer(*stand.take(self.path, body))

            def _answer(self, status: int, value: Any) -> None:
                self._send(status, json.dumps(value).encode())

            def _send(self, status: int, data: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                try:
                    self.wfile.write(data)
                except OSError:
                    pass  # The program that asked has ended.

            def log_message(self, *_: Any) -> None:
                """Nothing of this belongs into the output of the tests."""

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.url = "http://127.0.0.1:%d" % self.port
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def take(self, path: str, body: bytes) -> Tuple[int, Any]:
        parts = path.split("/")[3:]
        if parts == ["runs"]:
            run = json.loads(body)
            created = run["id"] not in self.runs
            self.runs.setdefault(run["id"], {}).update(run)
            return 200, {"id": run["id"], "name": run["name"], "created": created}
        run_id, what = parts[1], parts[2]
        if run_id not in self.runs:
            return 404, {"error": {"code": "unknown_run", "message": "There is no such run."}}
        if what == "end":
            self.ends.append(json.loads(body))
        elif what == "report":
            self.reports.append(json.loads(body))
        else:
            return self._take_steps(run_id, body)
        return 200, {"id": run_id}

    def _take_steps(self, run_id: str, body: bytes) -> Tuple[int, Any]:
        lines = [json.loads(line) for line in body.splitlines()]
        if len(lines) > self.most_lines:
            return 413, {"error": {"code": "body_too_large", "message": "too large"}}
        if any(line["step"] == self.bad_step for line in lines):
            return 400, {"error": {"code": "invalid_body", "message": "a bad step"}}
        accepted = 0
        for line in lines:
            key = (run_id, line["rank"], line["seq"])
            if key in self.steps:
                self.duplicates += 1
            else:
                self.steps[key] = line
                accepted += 1
        duplicates = len(lines) - accepted
        counts = {"accepted": accepted - self.forgets, "duplicates": duplicates, "rejected_count": 0}
        return 200, {"run": run_id, "last_seq": {}, "rejected": [], **counts}

    def logged(self) -> List[int]:
        return sorted(line["step"] for line in self.steps.values())

    def close(self) -> None:
        if self.gate is not None:
            self.gate.set()
        self._server.shutdown()
        self._server.server_close()
