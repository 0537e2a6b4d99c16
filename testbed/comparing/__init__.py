"""Implements `agglab compare A B`, which shows what differs between two results, and whether it is
more than noise."""
