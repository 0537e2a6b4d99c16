"""The endpoints of each system, without sockets and clocks. Each system has a package, with

    endpoint(part: Part) -> Endpoint                      # one agent's part in a job
    reducer(part: Part, hooks: Hooks) -> Reducer          # the same over a socket (optional)

A system of a user's own is a module of theirs with the same functions (docs/own-systems.md).
"""
