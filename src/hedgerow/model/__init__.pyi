from . import costs as costs
from . import occupancy as occupancy
