"""Helpers that know nothing about matrices: optional libraries, atomic files, readable tables."""
