"""What a result folder holds, and what several results have in common."""
