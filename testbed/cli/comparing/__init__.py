"""Implements `agglab compare A B`, which shows what differs between two results, and whether times
differ by more than noise."""
