"""What checks the compiler and the switch. No other package of p4native imports it."""
