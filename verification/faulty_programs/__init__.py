"""Runs P4 programs that have one fault each, and shows which verdicts they get.

    python -m agglab.verification faulty-programs --runs 20 --busy 8

The sums of such a program are right, but its switch answers late, only when asked, too often, or at
the wrong port. `catalogue` reads the faults (faulty_programs.yaml in the folder that a system has
for its verification), `trials` runs the programs, and `command` prints the table.
"""
