"""A framework on Mesos's v1 scheduler API.

One thread reads events; a function, the manner, handles each offer. It records when offers came,
the states of tasks, and rescinded offers.
"""

import base64
import contextlib
import http.client
import itertools
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from tests.cluster.processes import until

CALL_TIMEOUT_S = 30.0
FAILOVER_TIMEOUT_S = 600.0
CAPABILITIES = ("MULTI_ROLE", "PARTITION_AWARE", "RESERVATION_REFINEMENT", "SHARED_RESOURCES")
TERMINAL = {"FINISHED", "FAILED", "KILLED", "ERROR", "LOST", "DROPPED", "GONE", "GONE_BY_OPERATOR"}
_numbers = itertools.count(1)

Offer = dict[str, Any]
Manner = Callable[["Framework", Offer], None]


class Framework:
    """A framework that stays subscribed until its context ends.

    address: host:port of the master.
    manner: called in the thread that reads; by default offers are kept.
    framework_id: of a framework that fails over to this one.
    info: more of its `FrameworkInfo`.
    offers: outstanding ones, by id.
    offered_at: when offers came, monotonic, in seconds.
    seen: all offers so far.
    callbacks: the same, as they came together.
    tasks: the states of each task in order, without ``TASK_``; empty before the first.
    counts: events and calls by name.
    """

    def __init__(
        self,
        address: str,
        name: str,
        roles: Sequence[str],
        manner: Manner | None = None,
        *,
        framework_id: str | None = None,
        capabilities: Sequence[str] = CAPABILITIES,
        suppressed: Sequence[str] = (),
        constraints: object = None,
        failover_timeout_s: float = FAILOVER_TIMEOUT_S,
        labels: dict[str, str] | None = None,
        info: dict[str, Any] | None = None,
    ) -> None:
        self.address, self.name, self.roles = address, name, tuple(roles)
        self.manner: Manner = manner or keep
        self.framework_id = framework_id or ""
        self.offers: dict[str, Offer] = {}
        self.offered_at: list[float] = []
        self.seen: list[Offer] = []
        self.callbacks: list[list[Offer]] = []
        self.tasks: dict[str, list[str]] = {}
        self.messages: dict[str, str] = {}
        self.counts: Counter[str] = Counter()
        self.inverse_offers: list[dict[str, Any]] = []
        self.rescinded: list[str] = []
        self.errors: list[str] = []
        self.lock = threading.RLock()
        self._info: dict[str, Any] = {
            "user": "root",
            "name": name,
            **({"roles": list(roles)} if "MULTI_ROLE" in capabilities else {"role": roles[0]}),
            "failover_timeout": failover_timeout_s,
            "checkpoint": True,
            "capabilities": [{"type": each} for each in capabilities],
        }
        if labels:
            pairs = [{"key": key, "value": value} for key, value in labels.items()]
            self._info["labels"] = {"labels": pairs}
        self._info |= info or {}
        self._suppressed, self._constraints = list(suppressed), constraints
        self._stream_id = ""
        self._subscribed = threading.Event()
        self._closing = False
        self._calls: http.client.HTTPConnection | None = None
        self._socket: socket.socket | None = None
        self._reader = threading.Thread(target=self._read, name=f"framework {name}", daemon=True)

    # The session.

    def start(self) -> "Framework":
        """Subscribe, and wait for the master's confirmation."""
        self._reader.start()
        until(self._is_answered, 60, f"{self.name} is answered")
        assert self._subscribed.is_set(), f"{self.name} is not subscribed: {self.errors}"
        return self

    def _is_answered(self) -> bool:
        """Whether the master has confirmed, or closed the stream."""
        return self._subscribed.is_set() or not self._reader.is_alive()

    @property
    def connected(self) -> bool:
        return self._subscribed.is_set() and self._reader.is_alive()

    def disconnect(self) -> None:
        """Close the stream, as a crash of the scheduler would."""
        self._closing = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        if self._reader.is_alive() and self._reader is not threading.current_thread():
            self._reader.join(30)
        with self.lock:
            if self._calls is not None:
                self._calls.close()

    def _read(self) -> None:
        try:
            self._subscribe()
        except (OSError, http.client.HTTPException, ValueError) as error:
            if not self._closing:
                self.errors.append(f"stream: {error!r}")

    def _subscribe(self) -> None:
        info = {**self._info}
        body: dict[str, Any] = {"type": "SUBSCRIBE", "subscribe": {"framework_info": info}}
        if self.framework_id:
            info["id"] = body["framework_id"] = {"value": self.framework_id}
        body["subscribe"]["suppressed_roles"] = self._suppressed
        if self._constraints is not None:
            body["subscribe"]["offer_constraints"] = self._constraints
        # The timeout bounds the silence between two heartbeats (15 s).
        stream = http.client.HTTPConnection(self.address, timeout=120)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        stream.request("POST", "/api/v1/scheduler", json.dumps(body), headers)
        self._socket = stream.sock
        with contextlib.closing(self._socket), stream.getresponse() as response:
            if response.status != 200:
                raise ValueError(response.read().decode())
            self._stream_id = response.getheader("Mesos-Stream-Id") or ""
            # RecordIO: the length of a record as text, a line feed, the record.
            while (line := response.readline()) and not self._closing:
                record = response.read(int(line))
                self._handle(json.loads(record))

    def call(self, kind: str, **fields: object) -> None:
        """Make a call such as ``call("REVIVE", roles=["eng"])``."""
        body: dict[str, Any] = {"type": kind, "framework_id": {"value": self.framework_id}}
        if fields:
            body[kind.lower()] = fields
        headers = {"Content-Type": "application/json", "Mesos-Stream-Id": self._stream_id}
        with self.lock:
            self.counts[f"call {kind}"] += 1
            for attempt in (1, 2):
                if self._calls is None:
                    self._calls = http.client.HTTPConnection(self.address, timeout=CALL_TIMEOUT_S)
                try:
                    self._calls.request("POST", "/api/v1/scheduler", json.dumps(body), headers)
                    response = self._calls.getresponse()
                    text = response.read().decode()
                except (OSError, http.client.HTTPException):
                    self._calls.close()
                    self._calls = None
                    if attempt == 2:
                        raise
                    continue
                if response.status >= 300:
                    self.errors.append(f"{kind}: {response.status} {text}")
                return

    # Events.

    def _handle(self, event: Any) -> None:
        kind: str = event["type"]
        now_s = time.monotonic()
        with self.lock:
            self.counts[kind] += 1
        handler = getattr(self, "_on_" + kind.lower(), None)
        if handler is not None:
            handler(event.get(kind.lower(), {}), now_s)

    def _on_subscribed(self, event: Any, now_s: float) -> None:
        self.framework_id = event["framework_id"]["value"]
        self._subscribed.set()

    def _on_offers(self, event: Any, now_s: float) -> None:
        with self.lock:
            self.offered_at.append(now_s)
            self.callbacks.append(event["offers"])
            for offer in event["offers"]:
                self.offers[offer["id"]["value"]] = offer
                self.seen.append(offer)
                self.counts["offers"] += 1
        for offer in event["offers"]:
            self.manner(self, offer)

    def _on_rescind(self, event: Any, now_s: float) -> None:
        offer_id = event["offer_id"]["value"]
        with self.lock:
            self.rescinded.append(offer_id)
            self.offers.pop(offer_id, None)

    def _on_inverse_offers(self, event: Any, now_s: float) -> None:
        with self.lock:
            self.inverse_offers.extend(event["inverse_offers"])

    def _on_error(self, event: Any, now_s: float) -> None:
        self.errors.append(event["message"])

    def _on_update(self, event: Any, now_s: float) -> None:
        status = event["status"]
        task_id = status["task_id"]["value"]
        with self.lock:
            states = self.tasks.setdefault(task_id, [])
            states.append(status["state"].removeprefix("TASK_"))
            self.messages[task_id] = status.get("message", "")
        if "uuid" in status:
            self.call(
                "ACKNOWLEDGE",
                agent_id=status["agent_id"],
                task_id=status["task_id"],
                uuid=base64.b64encode(base64.b64decode(status["uuid"])).decode(),
            )

    # What a framework does with offers.

    def take(self, offer: Offer) -> bool:
        """Remove an outstanding offer; False if it is gone."""
        with self.lock:
            return self.offers.pop(offer["id"]["value"], None) is not None

    def decline(self, offer: Offer, refuse_s: float = 0.0) -> None:
        if self.take(offer):
            ids = [offer["id"]]
            self.call("DECLINE", offer_ids=ids, filters={"refuse_seconds": refuse_s})

    def accept(self, offer: Offer, operations: list[Any], refuse_s: float = 0.0) -> bool:
        """Use an offer, and release the rest; False if it is gone."""
        if not self.take(offer):
            return False
        self.call(
            "ACCEPT",
            offer_ids=[offer["id"]],
            operations=operations,
            filters={"refuse_seconds": refuse_s},
        )
        return True

    def launch(
        self, offer: Offer, resources: list[Any], seconds: float, *before: Any, name: str = ""
    ) -> str:
        """Run `sleep` on resources of the offer, after other operations; returns the task's id.

        The id begins with the name, or the framework's; it is empty if the offer is gone.
        """
        task_id = f"{name or self.name}-{next(_numbers)}"
        task = {
            "name": task_id,
            "task_id": {"value": task_id},
            "agent_id": offer["agent_id"],
            "resources": resources,
            "command": {"value": f"sleep {seconds:g}"},
        }
        operations = [*before, {"type": "LAUNCH", "launch": {"task_infos": [task]}}]
        with self.lock:
            if self.accept(offer, operations):
                self.tasks.setdefault(task_id, [])
                return task_id
        return ""

    def decline_all(self, refuse_s: float = 0.0) -> None:
        with self.lock:
            offers = list(self.offers.values())
        for offer in offers:
            self.decline(offer, refuse_s)

    def update(self, roles: Sequence[str], suppressed: Sequence[str] = ()) -> None:
        """Change the roles (UPDATE_FRAMEWORK)."""
        self._info["roles"] = list(roles)
        info = {**self._info, "id": {"value": self.framework_id}}
        self.call("UPDATE_FRAMEWORK", framework_info=info, suppressed_roles=list(suppressed))

    def states(self) -> Counter[str]:
        """Number of tasks in each state; ``STAGED`` before the first one."""
        with self.lock:
            return Counter(each[-1] if each else "STAGED" for each in self.tasks.values())

    def running(self) -> list[str]:
        with self.lock:
            return [key for key, each in self.tasks.items() if not TERMINAL & set(each)]


def keep(framework: Framework, offer: Offer) -> None:
    """Neither accept nor decline."""
