"""The HTTP interfaces of a master: operators' calls, its state, its metrics."""

import http.client
import json
from typing import Any

TIMEOUT_S = 30.0
OLD_AGENTS = "sla" + "ves"
"""Mesos's former word for agents, which `/state` and the metrics still use."""


class CallFailedError(Exception):
    """A call was answered with an error.

    status: the HTTP status.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status


class Operator:
    """Operators' calls to the master or agent at host:port."""

    def __init__(self, address: str) -> None:
        self.address = address

    def request(self, method: str, path: str, body: object = None) -> Any:
        """Send a request; returns the parsed JSON of the answer, None if it is empty."""
        connection = http.client.HTTPConnection(self.address, timeout=TIMEOUT_S)
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        if response.status >= 300:
            raise CallFailedError(response.status, text)
        return json.loads(text) if text else None

    def call(self, kind: str, **fields: object) -> Any:
        """Make a call such as ``call("DRAIN_AGENT", agent_id={"value": "..."})``."""
        body: dict[str, object] = {"type": kind}
        if fields:
            body[kind.lower()] = fields
        answer = self.request("POST", "/api/v1", body)
        return answer.get(kind.lower(), {}) if answer else {}

    def state(self) -> Any:
        """Agents, frameworks with their offers, tasks and executors, at one instant."""
        return self.call("GET_STATE")

    def metrics(self) -> dict[str, float]:
        return self.request("GET", "/metrics/snapshot")

    def old_state(self) -> Any:
        """The `/state` page; its agents are under `OLD_AGENTS`."""
        return self.request("GET", "/state")

    def try_call(self, kind: str, **fields: object) -> int:
        """Make a call; returns the HTTP status, 0 without an answer."""
        try:
            self.call(kind, **fields)
        except CallFailedError as error:
            return error.status
        except OSError:
            return 0
        return 200
