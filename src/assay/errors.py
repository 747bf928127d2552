"""Errors, sorted by who should read them.

AssayError
├── UserError     the person: one line that says what to do; exit code 2, no traceback
├── ToolError     the model: comes back to it as the result of its call
├── ModelError    the operator: an endpoint failed; the run stays resumable
└── StoreError    the operator: the workspace's state could not be read or written

Running out of budget, finding nothing and needing a person are outcomes, not errors.
"""


class AssayError(Exception):
    """The root: whatever Assay raises on purpose."""


class UserError(AssayError):
    """Something the person can put right."""


class ToolError(AssayError):
    """Something the model can put right."""


class ModelError(AssayError):
    """An endpoint refused, failed or did not keep to its protocol."""


class StoreError(AssayError):
    """The state store or the index could not be read or written."""
