"""What theory says of the test errors on this system's tasks."""

from attnlab.common.reference import Reference

REFERENCES: tuple[Reference, ...] = ()
