"""What a pretrained linear attention layer reaches: errors in and out of distribution, limits, finite sizes."""

from attnlab_icl.theory.errors import errors, g_task, icl_error, idg_error, training_error
from attnlab_icl.theory.finite_size import finite_size_errors
from attnlab_icl.theory.in_context import dmmse_error, ridge_error
from attnlab_icl.theory.marchenko_pastur import stieltjes, traces
from attnlab_icl.theory.optimum import best_context_length, optimal_ridge

__all__ = [
    "best_context_length",
    "dmmse_error",
    "errors",
    "finite_size_errors",
    "g_task",
    "icl_error",
    "idg_error",
    "optimal_ridge",
    "ridge_error",
    "stieltjes",
    "traces",
    "training_error",
]

# Values that the help of ``attnlab theory`` shows; a finite number of tasks, where the default is a new one each time.
EXAMPLES = {"dmmse_error.k": "16", "l": "160", "tau": "2", "alpha": "10"}
