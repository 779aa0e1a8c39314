"""matplotlib's figures, imported without this process's variables.

Where matplotlib has no list of fonts yet, its first import runs ``fc-list``, which would inherit every variable, keys
of model servers among them. So it gets those of ``KEPT`` alone, which say where things are. Other charts import
figures from here, and names of ``matplotlib.axes`` for types only.
"""

import os

KEPT = ("PATH", "HOME", "TMPDIR", "MPLCONFIGDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "LANG", "LC_ALL")

_environment = dict(os.environ)
for _name in _environment.keys() - {*KEPT}:
    del os.environ[_name]
try:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
finally:
    os.environ.update(_environment)

__all__ = ["Figure", "FigureCanvasAgg"]
