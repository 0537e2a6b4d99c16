"""P4Runtime 1.x over gRPC: server.py starts it, docs/p4runtime.md says what is supported.

Every published p4runtime package has code generated for protobuf 3, which newer protobuf accepts
only in its Python implementation; that choice must be made before protobuf is first imported.
"""

import os

os.environ.setdefault("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python")
