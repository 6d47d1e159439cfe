"""What a framework's own sources say of its keys: JSON Schemas, compiled, and a document held against one."""
