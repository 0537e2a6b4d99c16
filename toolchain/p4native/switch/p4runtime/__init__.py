"""P4Runtime 1.x over gRPC: server.py starts it, and docs/p4runtime.md says what is supported.

Every published p4runtime package has code generated for protobuf 3. Newer versions of protobuf
accept such code only in their Python implementation. This implementation must be chosen before
protobuf is first imported.
"""

import os

os.environ.setdefault("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python")
