"""The format of scenario files, and a strict reader that reports all errors at once.

Times are in seconds, amounts in Mesos's form (``cpus:2;mem:2048``).
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from allocator.core import MILLI, REQUESTS_MAX, UNLIKE_MAX, format_quantities, parse_quantities
from allocator.near import suggestion
from laboratory.frameworks.spark import DynamicAllocation, SparkSettings

Law: TypeAlias = Literal["constant", "exponential", "erlang", "lognormal", "pareto"]
Text: TypeAlias = Annotated[str, Field(min_length=1)]
Count: TypeAlias = Annotated[int, Field(ge=1, le=1_000_000)]
Seconds: TypeAlias = Annotated[float, Field(ge=0, le=1e7)]
Positive: TypeAlias = Annotated[float, Field(ge=0.001, le=1e7)]


def _amounts(text: str) -> str:
    """Check the form of amounts; there must be at least one."""
    if not parse_quantities(text):
        raise ValueError("must name at least one amount, as in 'cpus:2;mem:2048'")
    return text


Amounts: TypeAlias = Annotated[str, AfterValidator(_amounts)]


class _Section(BaseModel):
    """A table of the file: unknown keys are errors, and no value is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _refuse(key: str, message: str) -> None:
    """Report a key that is wrong in combination with others of its table."""
    raise PydanticCustomError("section", "{message}", {"key": key, "message": message})


class Duration(_Section):
    """Durations of tasks."""

    law: Law = "exponential"
    mean_s: Positive
    alpha: Annotated[float, Field(gt=1.0, le=100.0)] = 2.0
    phases: Annotated[int, Field(ge=1, le=1000)] = 20
    variation: Annotated[float, Field(ge=0.0, le=10.0)] = 0.3

    @model_validator(mode="after")
    def _only_what_the_law_has(self) -> "Duration":
        for key, its in (("alpha", "pareto"), ("phases", "erlang"), ("variation", "lognormal")):
            if key in self.model_fields_set and self.law != its:
                _refuse(key, f"belongs to the law {its!r}, not {self.law!r}; leave it out")
        return self


class Agents(_Section):
    """A number of equal agents."""

    name: Text
    capacity: Amounts
    count: Count = 1
    attributes: dict[str, str] = {}
    arrives_s: Seconds = 0.0
    apart_s: Seconds = 0.0
    leaves_s: Seconds | None = None


class Role(_Section):
    """Settings of a role."""

    path: Text
    weight: Annotated[float, Field(gt=0.0, le=1e6)] = 1.0
    guarantee: Amounts | None = None
    limit: Amounts | None = None


class Size(_Section):
    """One size of task."""

    need: Amounts
    share: Annotated[float, Field(gt=0.0, le=1.0)]


class _Queues(_Section):
    """Common to all kinds of frameworks: queues of jobs, each job a framework of its own."""

    name: Text
    role: Text
    count: Count = 1
    jobs: Count = 1
    arrives_s: Seconds = 0.0
    apart_s: Seconds = 0.0
    arrival: Literal["regular", "poisson"] = "regular"
    gap_s: Seconds = 0.0
    states_demand: bool = True


class Frameworks(_Queues):
    """Queues of jobs that are sets of tasks."""

    tasks: Count
    task: Amounts | None = None
    sizes: list[Size] = []
    duration: Duration
    gang: Count = 1
    states_gang: bool = False
    holds_s: Positive = 30.0
    greedy: bool = False
    refuse_s: Seconds = 5.0
    allowed: dict[str, list[str]] = {}
    constrained: bool = False
    cancelled_after_s: Positive | None = None

    @model_validator(mode="after")
    def _check(self) -> "Frameworks":
        if (self.task is None) == (not self.sizes):
            _refuse("task", "give either task or sizes")
        if self.sizes and abs(sum(size.share for size in self.sizes) - 1) > 1e-6:
            total = sum(size.share for size in self.sizes)
            _refuse("sizes", f"the shares must add up to 1, not {total:g}")
        if self.gang > 1 and self.tasks % self.gang:
            _refuse("gang", f"{self.tasks} tasks cannot be divided into gangs of {self.gang}")
        if self.gang > 1 and self.greedy:
            _refuse("gang", "a gang cannot be greedy; leave that out")
        if self.gang > 1 and any(
            abs(size.share * self.gang - number) > 1e-6 or not number
            for size, number in zip(self.sizes, self.together, strict=False)
        ):
            _refuse("sizes", f"each share of a gang of {self.gang} must be whole tasks")
        if self.states_gang and self.sizes and self.gang > REQUESTS_MAX:
            message = f"tasks of several sizes are stated by a REQUEST, of at most {REQUESTS_MAX}"
            _refuse("gang", message)
        if self.states_gang and len(self.sizes) > UNLIKE_MAX:
            _refuse("sizes", f"a gang that is stated has at most {UNLIKE_MAX} sizes")
        if self.states_gang and not self.states_demand:
            _refuse("states_gang", "needs states_demand")
        if self.states_gang and self.sizes and self.gang == 1:
            _refuse("states_gang", "needs a gang of at least 2 tasks if there are several sizes")
        return self

    @property
    def needs(self) -> list[tuple[str, str]]:
        """Needs of its tasks, with the keys that state them."""
        if self.task:
            return [("task", self.task)]
        return [(f"sizes.{place}.need", size.need) for place, size in enumerate(self.sizes)]

    @property
    def together(self) -> list[int]:
        """How many tasks of each need start together."""
        if self.gang == 1 or not self.sizes:
            return [self.gang] * len(self.needs)
        return [round(size.share * self.gang) for size in self.sizes]

    @property
    def uses_gpus(self) -> bool:
        """Whether any of its tasks uses GPUs."""
        return any(GPUS in parse_quantities(need) for _, need in self.needs)


class StageSection(_Section):
    """One stage of a Spark job."""

    tasks: Count
    mean_s: Positive
    variation: Annotated[float, Field(ge=0.0, le=10.0)] = 0.3


class Spark(_Queues):
    """Queues of Spark jobs in coarse-grained mode."""

    stages: Annotated[list[StageSection], Field(min_length=1)]
    executor_cores: Annotated[int, Field(ge=1, le=1024)] | None = None
    executor_memory_mib: Annotated[int, Field(ge=1, le=10_000_000)] = 1024
    cores_max: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    gpus_max: Annotated[int, Field(ge=0, le=1024)] = 0
    dynamic_allocation: bool = False
    start_s: Seconds = 2.5
    gap_s: Seconds = 4.5
    allowed: dict[str, list[str]] = {}
    together: ClassVar[list[int]] = [1]

    @model_validator(mode="after")
    def _check(self) -> "Spark":
        cores = self.executor_cores or 1
        if self.cores_max is not None and self.cores_max < cores:
            message = f"{self.cores_max} is less than executor_cores ({cores}): no executor starts"
            _refuse("cores_max", message)
        return self

    @property
    def settings(self) -> SparkSettings:
        """The settings as `SparkSettings`."""
        return SparkSettings(
            executor_cores=self.executor_cores,
            executor_memory_mib=self.executor_memory_mib,
            cores_max=self.cores_max,
            gpus_max=self.gpus_max,
            constraints={name: frozenset(values) for name, values in self.allowed.items()},
            dynamic=DynamicAllocation() if self.dynamic_allocation else None,
        )

    @property
    def needs(self) -> list[tuple[str, str]]:
        """Minimum needs of an executor, with the key that states them."""
        least = {"cpus": MILLI * (self.executor_cores or 1), "mem": self.settings.memory}
        key = "executor_cores" if self.executor_cores else "executor_memory_mib"
        return [(key, format_quantities(least))]

    @property
    def uses_gpus(self) -> bool:
        return self.gpus_max > 0


class Constraints(_Section):
    """Random constraints: agent types satisfy some; `constrained` frameworks request some."""

    constraints: Annotated[int, Field(ge=1, le=100)] = 21
    per_job: Annotated[float, Field(gt=0.0, le=100.0)] = 1.8
    rarest: Annotated[float, Field(gt=0.0, le=1.0)] = 0.07
    commonest: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    rarer: Annotated[float, Field(ge=0.0, le=10.0)] = 0.4
    types: Count = 50


class ScenarioFile(_Section):
    """A whole file.

    about: what it shows, in a sentence.
    until_s: when a run ends, even if jobs are left.
    sample_s: interval at which roles' holdings are sampled.
    filter_gpus: Mesos's option: agents with GPUs are only offered to frameworks that can use them.
    """

    about: Text
    until_s: Positive = 86_400.0
    sample_s: Positive = 5.0
    filter_gpus: bool = True
    agents: Annotated[list[Agents], Field(min_length=1)]
    roles: list[Role] = []
    frameworks: list[Frameworks] = []
    spark: list[Spark] = []
    constraints: Constraints | None = None

    @property
    def groups(self) -> tuple[Frameworks | Spark, ...]:
        return (*self.frameworks, *self.spark)

    @model_validator(mode="after")
    def _check(self) -> "ScenarioFile":
        if not self.frameworks and not self.spark:
            _refuse("frameworks", "nothing runs: give [[frameworks]] or [[spark]]")
        names = [group.name for group in self.groups]
        for name in names:
            if names.count(name) > 1:
                _refuse("frameworks", f"two groups are named {name!r}; name each once")
        for place, group in enumerate(self.frameworks):
            if group.constrained and self.constraints is None:
                message = "asks for random constraints, and there are none; add [constraints]"
                _refuse(f"frameworks.{place}.constrained", message)
        places = [f"frameworks.{place}" for place in range(len(self.frameworks))]
        places += [f"spark.{place}" for place in range(len(self.spark))]
        for place_of, each in zip(places, self.groups, strict=True):
            if problem := self._problem_of(each):
                key, message = problem
                _refuse(f"{place_of}.{key}", message)
        return self

    def _problem_of(self, group: "Frameworks | Spark") -> tuple[str, str] | None:
        """Explain why a group could never start, even alone: the key and a remedy."""
        allowed = [each for each in self.agents if _accepts(group.allowed, each)]
        if not allowed:
            return "allowed", f"{group.allowed!r} matches none of the agents; correct it"
        if self.filter_gpus and not group.uses_gpus:
            # Mesos keeps agents with GPUs for frameworks that can use them.
            allowed = [each for each in allowed if not parse_quantities(each.capacity).get(GPUS)]
        for (key, text), together in zip(group.needs, group.together, strict=True):
            need = parse_quantities(text)
            at_once = sum(each.count * _tasks(need, each.capacity) for each in allowed)
            which = " that it may use" if group.allowed else ""
            if not at_once:
                return key, f"{text!r} fits on none of the agents{which}; make it smaller"
            for role in self.roles:
                inside = f"{group.role}/".startswith(f"{role.path}/")
                if inside and role.limit and not _tasks_within(need, role.limit):
                    return key, f"{text!r} is more than the limit of the role {role.path}"
            if together > at_once:
                of = f" of {text}" * (len(group.together) > 1)
                mend = f"at most {at_once} fit at a time"
                return "gang", f"{together} tasks{of} never run together: {mend}"
        return None


GPUS = "gpus"

DRAWN = "constraint-"
"""Prefix of random attributes of agents."""


def _accepts(allowed: Mapping[str, list[str]], agents: Agents) -> bool:
    """Whether agents have the requested attributes; random ones are not known yet."""
    return all(
        name in agents.attributes and (not values or agents.attributes[name] in values)
        for name, values in allowed.items()
        if name != "hostname" and not name.startswith(DRAWN)
    )


def _tasks(need: Mapping[str, int], capacity: str) -> int:
    """How many tasks fit on an empty agent."""
    has = parse_quantities(capacity)
    return min((has.get(name, 0) // amount for name, amount in need.items() if amount), default=1)


def _tasks_within(need: Mapping[str, int], limit: str) -> int:
    """How many tasks fit within a limit; resources it does not name are unlimited."""
    most = parse_quantities(limit)
    bounded = ((name, need.get(name, 0)) for name in most)
    return min((most[name] // amount for name, amount in bounded if amount), default=1)


# Reading a scenario file, and reporting its errors.

SHOWN_MAX = 80
"""Characters of a wrong value that are shown."""


class ScenarioError(ValueError):
    """A scenario that cannot be played; the message has one line per error."""


BYTES_MAX = 2**24
"""Limit on the size of a file."""


def read(path: Path) -> ScenarioFile:
    """Read a scenario.

    Raises ScenarioError naming the file, each wrong field with its value, and the remedy.
    """
    try:
        with path.open("rb") as file:  # may be a pipe, without a size
            text = file.read(BYTES_MAX + 1)
        if len(text) > BYTES_MAX:
            raise ScenarioError(f"{path}: has more than {BYTES_MAX} bytes; is it a scenario?")
        data = tomllib.loads(text.decode())
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ScenarioError(f"{path}: cannot be read: {reason}") from None
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{path}: is not TOML: {error}") from None
    return check(data, str(path))


def check(data: Mapping[str, Any], origin: str) -> ScenarioFile:
    """Check the content of a file; `origin` is named in the errors."""
    try:
        return ScenarioFile.model_validate(data)
    except ValidationError as error:
        details = error.errors(include_url=False)
        raise ScenarioError("\n".join(f"{origin}: {_problem(each)}" for each in details)) from None


def _problem(detail: ErrorDetails) -> str:
    key = list(detail["loc"])
    if detail["type"] == "section":
        parts = str(detail["ctx"]["key"]).split(".")
        key += [int(part) if part.isdecimal() else part for part in parts]
    value = detail["input"]
    # For an error of a whole table the value is the table: the key says enough.
    shown = "" if isinstance(value, BaseModel | dict) else f" = {_short(value)}"
    return f"{_dotted(key)}{shown}: {_message(detail, key)}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."


def _dotted(key: list[str | int]) -> str:
    text = ""
    for part in key:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


RIGHT = {
    "missing": "is missing; give it",
    "section": "{message}",
    "value_error": "{error}",
    "literal_error": "must be {expected}",
    "string_too_short": "must not be empty",
    "too_short": "must have at least one entry",
    "greater_than_equal": "must be {ge} or more",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be {le} or less",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "string_type": "must be text in quotes",
    "bool_type": "must be true or false",
    "list_type": "must be a list; tables of a list are written as [[name]]",
    "dict_type": "must be a table",
    "model_type": "must be a table",
}
"""Messages by pydantic's type of error."""


def _message(detail: ErrorDetails, key: list[str | int]) -> str:
    if detail["type"] == "extra_forbidden":
        return f"unknown key{_nearest(key)}"
    text = RIGHT.get(detail["type"])
    return f"must be {detail['msg']}" if text is None else text.format(**detail.get("ctx", {}))


def _nearest(key: list[str | int]) -> str:
    """Suggest a similar key."""
    model: Any = ScenarioFile
    for part in key[:-1]:
        if isinstance(part, str) and part in model.model_fields:
            model = _model_in(model.model_fields[part].annotation) or model
    known = list(model.model_fields)
    return suggestion(str(key[-1]), known, cutoff=0.5) or f"; known are {', '.join(known)}"


def _model_in(annotation: object) -> type[BaseModel] | None:
    """The table that a field holds, perhaps in a list or optional."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = (_model_in(each) for each in get_args(annotation))
    return next((each for each in inner if each is not None), None)
