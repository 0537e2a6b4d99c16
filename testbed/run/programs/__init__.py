"""The programs of switches: compiling them, what users write into their tables, and what they have
counted."""
