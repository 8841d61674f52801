"""Ways to choose columns and rows."""
