"""BMv2's simple_switch as a program beside this process: its command line over Thrift
(`thrift_cli`), and a switch for packet tests (`engine`)."""
