"""The command line `agglab`: a module or a folder for each command."""
