"""The scenario that the outsider disturbs: a rack with a job of four workers, hosts for servers,
and the outsider, whose link is faster than the others."""

from __future__ import annotations

import tempfile
from pathlib import Path

from agglab.testbed import systems
from agglab.testbed.scenario import ResolvedScenario, load
from agglab.testbed.scenario.workloads import KINDS

OUTSIDER = "h5"
SECONDS_PER_FRAME = 70e-6
"""The time that a frame of half the MTU takes on the outsider's link."""
ELEMENTS_PER_FRAME = 25
"""The elements for each foreign frame. With them, the first of two rounds at 10 Mbit/s takes longer
than all foreign frames."""
ELEMENTS_PER_UPDATE, UPDATES_MIN = 1250, 10
"""The elements for each update of a training run, and the least number of updates. With them, the
training takes as long as the two rounds."""
MODEL, MODEL_ELEMENTS = "alexnet", 61_100_840
"""The model of workload `layers`, which is scaled to the wanted number of values."""
TEXT = """\
name: foreign
backend: virtual
seed: {seed}
system: {system}
topology: {{kind: rack, workers: 5, servers: 4}}
links: {{rate: 10mbit, queue: 4MB, overrides: [{{match: {outsider}-s1, rate: 100mbit}}]}}
workload: {{{workload}, rounds: 2}}
jobs: [{{workers: "h[1-4]"}}]
"""
ATTACK = "faults: [{{kind: attack, host: {outsider}, frames: {frames}, for: {for_us}us}}]\n"


def names() -> list[str]:
    """Returns the systems that run in virtual time, including those of installed packages."""
    return systems.in_virtual_time(systems.names())


def resolved(system: str, elements: int, seed: int, frames: int = 0) -> ResolvedScenario:
    """Returns the scenario of a seed. The seed also determines the kind of workload, the dtype and
    the variant of the system. frames: the number of frames that the outsider sends."""
    found = systems.find(system)
    abilities, variants = found.abilities, list(found.variants.values())
    kind = KINDS[abilities.workloads[seed % len(abilities.workloads)]]
    dtypes = [each for each in abilities.dtypes if each in kind.dtypes]
    dtype = dtypes[seed // 2 % len(dtypes)]
    keys = {"kind": kind.kind, "elements": elements, "dtype": dtype}
    if "updates" in kind.keys:
        keys["updates"] = max(UPDATES_MIN, elements // ELEMENTS_PER_UPDATE)
    if "scale" in kind.keys:
        keys |= {"model": MODEL, "scale": MODEL_ELEMENTS / elements}
    workload = ", ".join(f"{key}: {keys[key]}" for key in keys if key not in kind.unread)
    text = TEXT.format(seed=seed, system=system, outsider=OUTSIDER, workload=workload)
    if frames:
        for_us = round(frames * SECONDS_PER_FRAME * 1e6)
        text += ATTACK.format(outsider=OUTSIDER, frames=frames, for_us=for_us)
    with tempfile.TemporaryDirectory(prefix="agglab-foreign-") as folder:
        file = Path(folder) / "foreign.yaml"
        file.write_text(text)
        (point,) = load(file, variants[seed % len(variants)]).points
        return point.resolved
