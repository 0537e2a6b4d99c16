"""The language server `p4native-lsp`: shows an editor the compiler's messages while a program is
being written, and answers its questions about names.

text, sources -> analysis -> symbols, completion -> workspace know neither the protocol nor threads;
schedule, rpc and server connect them to an editor.
"""
