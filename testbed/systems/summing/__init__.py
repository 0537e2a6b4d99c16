"""The common parts of systems whose switches sum in slots, on a tree for each job. See
docs/protocol.md.

base        the answers of all these systems, which each of them inherits
sizes       the sizes of packets, from which most numbers follow
keys        the lanes, slots and windows of a scenario
partition   how jobs share the slots
slots       which job has which slots
sessions    the slots and tags of a job's sessions
plan        the trees and table entries
trees       the bytes that cross the links of a tree
bounds      the least time that a round can take
truth       what results must be
counters    the counters of switches
diagnosis   who is missing
attack      the frames of an outsider
"""
