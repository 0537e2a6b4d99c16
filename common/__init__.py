"""What the hosts, the compiler, the switch and the testbed share. Imports nothing of ours."""
