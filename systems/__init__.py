"""The endpoints of each system, which use neither sockets nor clocks. Each system has a package
with these functions:

    endpoint(part: Part) -> Endpoint                      # one agent's part in a job
    reducer(part: Part, hooks: Hooks) -> Reducer          # the same over a socket (optional)

A system that a user adds is a module with the same functions (docs/own-systems.md).
"""
