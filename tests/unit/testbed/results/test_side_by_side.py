"""What is computed of each run before runs are compared."""

from __future__ import annotations

from agglab.testbed.results.side_by_side import busiest


def test_the_busiest_direction_carried_its_bytes_in_the_rounds_of_the_longest_job() -> None:
    links = {
        "h1-s1": {"h1->s1": {"bytes": 300}, "s1->h1": {"bytes": 900}},
        "h2-s1": {"h2->s1": {"bytes": 600}, "s1->h2": {"bytes": 0}},
    }
    jobs = {"a": {"rounds": 2}, "b": {"rounds": 5}, "c": {"rounds": 3}}
    assert busiest({"links": links, "jobs": jobs}) == ("s1->h1", 180)
    assert busiest({"links": links, "jobs": {"a": {"rounds": 0}}}) is None
    assert busiest({"links": links}) is busiest({"jobs": jobs}) is None
