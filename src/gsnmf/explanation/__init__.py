"""What a factorization says about its matrix, and how it compares with others of the same rank."""
