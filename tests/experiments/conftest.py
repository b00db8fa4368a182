"""Makes the helpers beside the tests importable, and gives them small experiments."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
