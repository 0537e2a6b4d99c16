"""What a scenario may contain, as passive values: its sections and keys, kinds of values, faults,
expectations. Nothing here reads a file of a scenario or checks one."""
