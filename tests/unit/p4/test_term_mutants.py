"""What term_mutants.py changes, and that it sees a change that matters."""

from __future__ import annotations

from pathlib import Path

import pytest
from rules import ROOT, every
from term_mutants import Change, Workspace, changes, survivors


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("x = a && b;", ["x=a;", "x=b;"]),
        ("x = a || b && c;", ["x=a;", "x=b&&c;", "x=a||b;", "x=a||c;"]),
        ("if ((a || b) && f(c, d))", ["if((a||b))", "if(f(c,d))", "if((a)&&f(c,d))"]),
        ("x = (p && q) ? a : b;", ["x=(a);", "x=(b);", "x=(p)?a:b;"]),
        ("x = a ? b : c ? d : e;", ["x=(b);", "x=(c?d:e);", "x=a?b:(d);"]),
        ("x = a < b;", ["x=a<=b;"]),
        ("register<bit<8>>(4) r;", []),
        ("x[31:16] = 1; // a && b\n#if A && B\n", []),
    ],
)
def test_each_term_is_left_out_once(text: str, changed: list[str]) -> None:
    texts = ["".join(change.text.split()) for change in changes(text)]
    assert set(changed) <= set(texts)
    assert len(set(texts)) == len(texts) and bool(texts) == bool(changed)
    assert "".join(text.split()) not in texts


def test_a_change_says_where_it_is() -> None:
    first, _ = changes("a;\nx = b &&\n    c;\n")
    assert str(first) == "2: b && c  ->  b"


def test_what_matters_is_seen_and_what_does_not_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (rules,) = (rules for rules in every() if rules.program == "forwarding")
    space = Workspace(ROOT, tmp_path / "copy", tmp_path / "cache")
    source = (space.folder / "p4" / "forwarding.p4").read_text()
    condition = "standard_metadata.egress_port == standard_metadata.ingress_port"
    assert source.count(condition) == 1
    harmless = Change(1, "a", "b", source + "\n// nothing else\n")
    matters = Change(1, "a", "c", source.replace(condition, "false"))
    monkeypatch.setattr("term_mutants.changes", lambda text: iter([harmless, matters]))
    monkeypatch.setattr("term_mutants.tests_of", lambda rules: [])
    monkeypatch.setattr(
        "term_mutants.checks.unit", lambda space, tests: type("F", (), {"by": None})
    )
    assert list(survivors(rules, "forwarding.p4", space)) == [harmless]
    assert (space.folder / "p4" / "forwarding.p4").read_text() == source
