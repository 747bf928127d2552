"""Errors, grouped by who reads them. Running out of budget, finding nothing and needing a user decision are outcomes, not
errors."""


class AssayError(Exception):
    """Base class of all errors that Assay raises deliberately."""


class UserError(AssayError):
    """For the user, who can fix it: one line that says what to do; exit code 2, no traceback."""


class Missing(UserError):
    """The named thing does not exist or the user may not know of it; the two cases are indistinguishable."""


class Unwritable(UserError):
    """The workspace cannot be written to now: the disk is full, or the folder is closed to writers."""


class ToolError(AssayError):
    """For the model, which can fix it: returned to it as the result of its call."""


class ModelError(AssayError):
    """For the operator: an endpoint refused the request, failed or violated its protocol. The run stays resumable."""


class Stalled(AssayError):
    """A step of a run recorded nothing: it would be taken for ever."""


class TooLong(ModelError):
    """A prompt is longer than the model's window; it is shortened and sent again. `window` is how many tokens the model has,
    where the endpoint said so."""

    def __init__(self, words: str, window: int | None = None) -> None:
        super().__init__(words)
        self.window = window


class Late(ModelError):
    """An endpoint did not answer in the time it had. It may be busy, so this says nothing of what it can do; a retry may
    succeed."""


class StoreError(AssayError):
    """For the operator: the state store or the index could not be read or written."""


class CarriedOn(StoreError):
    """Another process has recorded the next event of a run."""
