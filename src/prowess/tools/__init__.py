"""What a model sees and calls: prompt blocks, tool definitions, one dispatcher."""
