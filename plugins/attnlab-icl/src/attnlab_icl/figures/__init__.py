"""The experiments of arXiv:2405.11751 and one of our own, with the claims they must show."""

from attnlab_icl.figures.context_length import CONTEXT_LENGTH
from attnlab_icl.figures.double_descent import DOUBLE_DESCENT
from attnlab_icl.figures.finite_size import FINITE_SIZE
from attnlab_icl.figures.nonmonotone import NONMONOTONE
from attnlab_icl.figures.task_diversity import TASK_DIVERSITY
from attnlab_icl.figures.two_errors import TWO_ERRORS

FIGURES = (DOUBLE_DESCENT, CONTEXT_LENGTH, NONMONOTONE, TASK_DIVERSITY, TWO_ERRORS, FINITE_SIZE)

# Titles of the papers that claims cite.
PAPERS = {
    "2405.11751": "Asymptotic theory of in-context learning by linear attention",
    "2306.15063": "Pretraining task diversity and the emergence of non-Bayesian in-context learning for regression",
}
