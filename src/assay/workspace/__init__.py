"""A workspace and everything that can be done with it. Programs start with `open_workspace`."""

from assay.workspace.facade import Workspace, default_workspace, open_workspace

__all__ = ["Workspace", "default_workspace", "open_workspace"]
