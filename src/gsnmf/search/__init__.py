"""Searches by the true error: candidates, pursuit, exchange, and the automatic method."""
