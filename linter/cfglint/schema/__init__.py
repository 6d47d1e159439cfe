"""What a framework's JSON Schema finds wrong with the keys and values of a document."""
