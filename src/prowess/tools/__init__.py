"""What a model sees and calls: the prompt block, the tool definitions and the answers to calls."""
