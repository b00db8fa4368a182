from . import offline as offline
