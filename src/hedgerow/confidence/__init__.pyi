from .kl import kt_interval as kt_interval
from .snapshot import Estimates as Estimates
