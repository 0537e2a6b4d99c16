"""`agglab pack` and `agglab repeat`: a result as one file that a reviewer can repeat."""
