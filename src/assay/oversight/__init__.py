"""Which answers wait for a person, who that may be, and what everybody else sees meanwhile."""
