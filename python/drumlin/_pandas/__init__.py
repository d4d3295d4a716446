"""pandas frames to Arrow and back, so that each frame comes back equal or is refused when it is written.

A frame of plain columns is converted by pyarrow, with pandas' own metadata in the Arrow schema (``plain``). Any other
frame is encoded column by column (``columns``, ``objects``), and the schema also has our own description of it
(``description``): the dtype of each column, the index, the labels, ``attrs``. What that description cannot express is
refused.

The modules, bottom to top: ``scalars`` and ``zones`` (one value as JSON), ``dtypes``, ``objects`` (columns of Python
objects), ``columns``, ``labels``, ``description``, ``plain``, ``write``, ``read``.
"""

from drumlin._pandas.description import index_columns, range_index
from drumlin._pandas.plain import Plain, from_numpy, plain
from drumlin._pandas.read import from_arrow
from drumlin._pandas.write import to_arrow

__all__ = ["Plain", "from_arrow", "from_numpy", "index_columns", "plain", "range_index", "to_arrow"]
