"""The configuration file of an agent, which docs/architecture.md describes under "hosts.agent"."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from agglab.hosts.endpoint import Address
from agglab.hosts.part import ROLES, WORKER, Part
from agglab.hosts.workloads import InputKey, Work, read

MAY_BE_ABSENT = ("worker", "sample_ns", "hosts", "first_timeout_s", "delays_s")
INTEGERS = ("job", "rank", "workers", "seed", "sample_ns")


class ConfigError(ValueError):
    """Raised if the configuration cannot be used. The message names the key."""


@dataclass(frozen=True)
class Config:
    """The contents of an agent's configuration file.

    system: the module that makes the system's endpoints (systems/__init__.py). settings: what this
    module needs. role: one of hosts.part.ROLES. work: what a worker does in a round (workloads/).
    The following keys may be absent. worker: a class of the user's own (own_worker.py). sample_ns:
    the shortest time between samples of the agent's state, 0 for no samples (recording.py). hosts:
    the address of each worker's host, by rank. first_timeout_s, delays_s: as in
    hosts.part.Part.
    """

    name: str
    system: str
    role: str
    job: int
    rank: int
    workers: int
    bind: Address
    link_rate_bps: float | None
    work: Work
    seed: int
    give_up_s: float
    settings: Mapping[str, Any]
    control: str
    sums_dir: str | None
    worker: str = ""
    sample_ns: int = 0
    hosts: Sequence[str] = ()
    first_timeout_s: float | None = None
    delays_s: float = 0.0

    @classmethod
    def read(cls, path: Path) -> Config:
        """Reads a configuration file. Raises ConfigError."""
        try:
            given = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path}: {error}") from error
        if not isinstance(given, dict):
            raise ConfigError(f"{path}: not an object")
        wrong = {field.name for field in fields(cls)} ^ {*MAY_BE_ABSENT, *given}
        if wrong:
            raise ConfigError(f"{path}: missing or unknown keys: {', '.join(sorted(wrong))}")
        given.setdefault("sample_ns", 0)
        for key in INTEGERS:
            if type(given[key]) is not int:
                raise ConfigError(f"{path}: {key}: {given[key]!r} is not an integer")
        given["bind"] = _address(path, "bind", given["bind"])
        if given["role"] not in ROLES:
            raise ConfigError(f"{path}: role: {given['role']!r} is none of {', '.join(ROLES)}")
        if not isinstance(given["settings"], dict):
            raise ConfigError(f"{path}: settings: not an object")
        return cls.of(given, str(path))

    @classmethod
    def of(cls, given: Mapping[str, Any], where: str) -> Config:
        """Makes the configuration from the values of all its keys. The value of `work` must have
        the form that workloads.description returns. where: what the error message names as the
        place. Raises ConfigError."""
        try:
            work = read(given["work"])
        except ValueError as error:
            raise ConfigError(f"{where}: work: {error}") from None
        return cls(**{**given, "work": work})

    @property
    def scratch(self) -> Path:
        """The folder of the control socket. The testbed removes it when the run is over."""
        return Path(self.control).parent

    @property
    def identity(self) -> dict[str, Any]:
        """The fields that are part of every event that the agent sends: job, name, rank, and the
        role unless it is a worker."""
        role = {} if self.role == WORKER else {"role": self.role}
        return {"job": self.job, "name": self.name, "rank": self.rank, **role}

    def inputs(self, number: int) -> NDArray:
        """Returns the inputs of this worker in round `number`."""
        return self.work.inputs(InputKey(self.seed, self.job, self.rank, number))

    def part(self, members: Sequence[int], changed: Mapping[str, Any]) -> Part:
        """Returns the Part from which the endpoint of a session is made. members: the ranks, in the
        whole job, of the workers that take part in the session. changed: settings that replace
        those of the configuration."""
        if self.role == WORKER and self.rank not in members:
            raise ConfigError(f"rank is {self.rank}; it must be 0 to {len(members) - 1}")
        return Part(
            self.job,
            self.role,
            members.index(self.rank) if self.role == WORKER else self.rank,
            len(members),
            self.bind,
            self.link_rate_bps,
            self.work,
            self.give_up_s,
            {**self.settings, **changed},
            self.worker,
            tuple(self.hosts[member] for member in members) if self.hosts else (),
            self.first_timeout_s,
            self.delays_s,
        )


def _address(path: Path, key: str, value: Any) -> Address:
    try:
        host, port = value
        return str(host), int(port)
    except (TypeError, ValueError):
        raise ConfigError(f"{path}: {key}: {value!r} is not [address, port]") from None
