"""What the library returns: small frozen records, and why the search for them ended."""
