"""Reads BMv2 JSON into the model (model.py). Each module reads a group of related members of the
JSON document."""
