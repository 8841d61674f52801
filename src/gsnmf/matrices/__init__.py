"""Everything that an algorithm may ask of a matrix: checks, one protocol, and what stands behind it."""
