"""The common parts of systems whose switches sum in slots, on a tree for each job.

See docs/protocol.md.

base        the answers that follow from that, for a system to inherit
sizes       of packets, from which most numbers follow
keys        lanes, slots and windows of a scenario
partition   how jobs share the slots
slots       which job has which slots
sessions    slots and tags of a job's sessions
plan        trees and table entries
trees       what crosses the links of a tree
bounds      the time that no run can undercut
truth       what results must be
counters    of the switches
diagnosis   who is missing
attack      frames of an outsider
"""
