"""The pip that comes with each Python: it starts from its wheel, where a virtual environment takes ten seconds."""

import ensurepip
import sys
import sysconfig
from pathlib import Path


def command() -> list[str]:
    """Return the command that starts it under this interpreter, whether or not pip is installed here."""
    folder = sysconfig.get_config_var("WHEEL_PKG_DIR") or Path(ensurepip.__file__).with_name("_bundled")
    wheel = max(Path(folder).glob("pip-*.whl"))
    return [sys.executable, "-P", str(wheel / "pip")]
