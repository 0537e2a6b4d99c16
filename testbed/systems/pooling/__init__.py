"""The common parts of systems whose jobs share the slots of switches, with a server for chunks that
find no slot. See docs/pooling.md.

base        the answers of all these systems, which each of them inherits
keys        the keys of a scenario that these systems have in common
trees       the tree from workers over switches to a job's server
plan        the table entries of switches
load        the bytes that a round puts on links
scales      which chunks do not fit the scale of integers
truth       what results must be
counters    the counters of switches
diagnosis   who is missing
attack      the payloads that an outsider forges
"""
