from . import figures, theory
from .learners.in_context import DiscreteMMSE, NullPredictor, RidgeInContext
from .learners.linear_attention import LinearAttention
from .moments import exact_error
from .task import Task, features

__all__ = [
    "DiscreteMMSE",
    "LinearAttention",
    "NullPredictor",
    "RidgeInContext",
    "Task",
    "exact_error",
    "features",
    "figures",
    "theory",
]
