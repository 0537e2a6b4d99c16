"""`agglab compare A B`: what differs between two results, and whether it is more than noise."""
