"""How many columns and rows, how sure each of them is, and what other numbers of columns and rows would cost."""
