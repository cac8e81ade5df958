"""The committed results of cells: one SQLite file, arrays beside it; readable anywhere, safe under kill -9."""

from attnlab.lab.store.file import Store as Store
from attnlab.lab.store.row import StoredCell as StoredCell
