"""Reports: pages of HTML that need nothing but themselves."""
