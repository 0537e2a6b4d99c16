"""The services that come with the laboratory: one module each. The module's class is the service,
and its `run` is the application."""
