"""From a matrix and a request to a factorization: the methods by name, and the one path that all calls take."""
