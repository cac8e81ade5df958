from .layer import attention as attention
from . import figures as figures
from . import theory as theory
from .task import Task as Task
