"""BMv2 JSON to the model, one module for each group of the document's members."""
