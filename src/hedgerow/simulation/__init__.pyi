from . import hooks as hooks
