"""What proves compiler, switch and protocols. Imports `testbed`; nothing imports it."""
