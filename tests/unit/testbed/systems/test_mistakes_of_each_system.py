"""A mistake that the testbed itself finds is not found a second time by a system."""

from __future__ import annotations

from pathlib import Path

import pytest

from agglab.testbed.scenario import ScenarioError, load
from agglab.testbed.scenario.checks import MAX_JOBS
from agglab.testbed.schema.system_names import built_in

TEXT = """
name: tried
system: {system}
topology: {{workers: {jobs}}}
jobs:
{lines}
"""


@pytest.mark.parametrize("system", built_in())
def test_too_many_jobs_are_one_mistake(tmp_path: Path, system: str) -> None:
    count = MAX_JOBS + 1
    lines = "\n".join(f"- {{name: j{n}, workers: [h{n}]}}" for n in range(1, count + 1))
    path = tmp_path / "tried.yaml"
    path.write_text(TEXT.format(system=system, jobs=count, lines=lines))
    with pytest.raises(ScenarioError) as found:
        load(path)
    of_jobs = [line for line in str(found.value).splitlines() if ": jobs: " in line]
    assert len(of_jobs) == 1 and f"{count} jobs are too many" in of_jobs[0]
