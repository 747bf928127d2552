"""Errors, sorted by who should read them.

AssayError
├── UserError     the person: one line that says what to do; exit code 2, no traceback
│   └── Missing   what they name is not there, or not theirs: nobody can tell which
├── ToolError     the model: comes back to it as the result of its call
├── ModelError    the operator: an endpoint failed; the run stays resumable
│   ├── TooLong   the prompt did not fit; it is laid out smaller and sent again
│   └── Late      nobody answered in time; the same may do later
└── StoreError    the operator: the workspace's state could not be read or written

Running out of budget, finding nothing and needing a person are outcomes, not errors.
"""


class AssayError(Exception):
    """The root: whatever Assay raises on purpose."""


class UserError(AssayError):
    """Something the person can put right."""


class Missing(UserError):
    """There is nothing of that name, or nothing that this person may know of: both look the same."""


class ToolError(AssayError):
    """Something the model can put right."""


class ModelError(AssayError):
    """An endpoint refused, failed or did not keep to its protocol."""


class TooLong(ModelError):
    """A prompt is longer than the model's window; `window` is how many tokens it has, where the endpoint said so."""

    def __init__(self, words: str, window: int | None = None) -> None:
        super().__init__(words)
        self.window = window


class Late(ModelError):
    """An endpoint did not answer in the time it had. It may be busy, so this says nothing of what it can do."""


class StoreError(AssayError):
    """The state store or the index could not be read or written."""
