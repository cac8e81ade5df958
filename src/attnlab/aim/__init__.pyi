from . import channels as channels
from . import spectrum as spectrum
from . import theory as theory
from .channels import UserChannel as UserChannel
from .learners.amp import AMP as AMP
from .stream import TokenStream as TokenStream
from .task import Task as Task
