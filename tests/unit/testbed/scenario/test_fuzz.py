"""Whatever the text, reading a scenario ends in a value or in a ScenarioError."""

import contextlib
from pathlib import Path

import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agglab.testbed.scenario import ScenarioError, load
from agglab.testbed.schema.scenario import keys

WORDS = ["1", "0", "-1", "1e9", "1mbit", "5ms", "1%", "true", "auto", "rack", "x", "", "*", "é\n"]
PATHS = [path for path, _, _ in keys()] + ["expect.exact", "sweep.seed", "links.overrides"]

scalars = st.one_of(st.sampled_from(WORDS), st.integers(), st.floats(), st.text(max_size=8))
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


def read(folder: Path, raw: bytes, *options: str) -> None:
    path = folder / "fuzz.yaml"
    path.write_bytes(raw)
    with contextlib.suppress(ScenarioError):
        load(path, options)


fuzz = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@fuzz
@given(st.binary(max_size=200))
@example(b"\xef\xbb\xbf")
@example(b"a: \x00")
@example(b"'\xf0\x9f\x98\x80': [")
def test_any_bytes(tmp_path_factory, raw: bytes) -> None:
    read(tmp_path_factory.getbasetemp(), raw)


@fuzz
@given(st.text(alphabet="[]{}:,-&*!|>'\"%@`#? \nab01\t\\", max_size=60))
def test_any_punctuation(tmp_path_factory, text: str) -> None:
    read(tmp_path_factory.getbasetemp(), text.encode())


@fuzz
@given(st.lists(st.tuples(st.sampled_from(PATHS), values), max_size=5))
def test_any_value_at_any_key(tmp_path_factory, entries) -> None:
    tree: dict = {}
    for path, value in entries:
        *sections, last = path.replace("[]", "").split(".")
        at = tree
        for section in sections:
            at = at.setdefault(section, {}) if isinstance(at.get(section, {}), dict) else {}
        at[last] = value
    read(tmp_path_factory.getbasetemp(), yaml.safe_dump(tree, allow_unicode=True).encode())


@fuzz
@given(st.text(max_size=20), st.text(max_size=20))
def test_any_setting(tmp_path_factory, path: str, value: str) -> None:
    read(tmp_path_factory.getbasetemp(), b"seed: 1", f"{path}={value}")
