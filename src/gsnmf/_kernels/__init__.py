"""Compiled inner loops, arrays in and arrays out, and the one policy on threads."""
