"""Errors, grouped by audience.

AssayError
├── UserError     the user: one line that says what to do; exit code 2, no traceback
│   └── Missing   it does not exist or the user may not see it: indistinguishable
├── ToolError     the model: returned to it as the result of its call
├── ModelError    the operator: an endpoint failed; the run stays resumable
│   ├── TooLong   the prompt did not fit; it is shortened and sent again
│   └── Late      timeout; a retry may succeed
└── StoreError    the operator: the workspace's state could not be read or written

Running out of budget, finding nothing and needing a user decision are outcomes, not errors.
"""


class AssayError(Exception):
    """Base class of all errors that Assay raises deliberately."""


class UserError(AssayError):
    """An error the user can fix."""


class Missing(UserError):
    """The named thing does not exist or the user may not know of it; the two cases are indistinguishable."""


class ToolError(AssayError):
    """An error the model can fix."""


class ModelError(AssayError):
    """An endpoint refused the request, failed or violated its protocol."""


class TooLong(ModelError):
    """A prompt is longer than the model's window; `window` is how many tokens it has, where the endpoint said so."""

    def __init__(self, words: str, window: int | None = None) -> None:
        super().__init__(words)
        self.window = window


class Late(ModelError):
    """An endpoint did not answer in the time it had. It may be busy, so this says nothing of what it can do."""


class StoreError(AssayError):
    """The state store or the index could not be read or written."""
