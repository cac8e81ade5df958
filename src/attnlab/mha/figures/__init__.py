"""The experiments of this system and the claims they decide."""

from attnlab.common.figure import Figure
from attnlab.mha.figures.coverage import COVERAGE
from attnlab.mha.figures.extraction import EXTRACTION
from attnlab.mha.figures.growth import GROWTH
from attnlab.mha.figures.hard import HARD
from attnlab.mha.figures.hull import HULL
from attnlab.mha.figures.lowrank import LOWRANK
from attnlab.mha.figures.noise import NOISE
from attnlab.mha.figures.patterns import PATTERNS
from attnlab.mha.figures.phase6 import PHASE6
from attnlab.mha.figures.queries import QUERIES
from attnlab.mha.figures.reach import REACH
from attnlab.mha.figures.recovery import RECOVERY
from attnlab.mha.figures.rounding import ROUNDING
from attnlab.mha.figures.samples import SAMPLES
from attnlab.mha.figures.sizes import SIZES
from attnlab.mha.figures.transformer import TRANSFORMER

FIGURES: tuple[Figure, ...] = (
    RECOVERY,
    SIZES,
    SAMPLES,
    GROWTH,
    LOWRANK,
    HULL,
    REACH,
    PHASE6,
    NOISE,
    HARD,
    ROUNDING,
    QUERIES,
    EXTRACTION,
    TRANSFORMER,
    COVERAGE,
    PATTERNS,
)

# Titles of the papers that claims cite.
PAPERS = {
    "2402.04084": "Provably learning a multi-head attention layer",
    "2601.16873": "Provably learning attention with queries",
    "2608.03294": "S. Kim, I. Kim, J. Guo: several heads from value queries",
    "0907.3740": "Empirical Bernstein bounds and sample variance penalization",
}
