"""The services that come with the laboratory: a module each, whose class is the service and its
application."""
