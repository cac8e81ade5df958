"""What can go wrong in the lab, in words a user can act on."""


class LabError(Exception):
    """A problem with a one-line explanation; the command line prints it without a traceback and exits with ``code``."""

    code = 1


class UsageError(LabError):
    """The request itself is wrong."""

    code = 2


class StoreHeld(LabError):
    """Another run is writing to this store."""

    code = 2


class StoreDamaged(LabError):
    """The store's file, or a result in it, is not what was written."""


class StoreUnwritable(LabError):
    """The disk is full or the folder cannot be written; what was committed before is intact."""
