"""The run-time check of annotations: shapes by jaxtyping, the rest by beartype; an int passes for a float."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
