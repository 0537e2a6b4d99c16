"""The services that Agglab provides, each in a module of its own. The module has one class, the
service, whose method `run` is the application."""
