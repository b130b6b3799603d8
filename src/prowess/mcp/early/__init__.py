"""Answers a client of standard input and output while the MCP SDK loads; ``early.client`` is the door to it.

It buys the row "MCP start" of the bench: the first answer comes in a quarter of the time. The SDK gets every line too.
``tests/mcp/test_early_answers.py`` compares what both say.
"""
