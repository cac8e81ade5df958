from . import aim as aim
from . import lab as lab
from . import mha as mha
from . import persist as persist
from . import rfa as rfa
from . import slr as slr
from . import smi as smi

__version__: str
