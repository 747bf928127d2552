"""Whether the record is what was recorded: signed heads, their witness in a second place, verification, bundles."""
