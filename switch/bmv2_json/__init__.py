"""The reader from BMv2 JSON to the model, with one module for each group of the document's
members."""
