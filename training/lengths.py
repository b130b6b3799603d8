"""Where texts are cut, in tokens with the marks of start and end."""

REQUEST_TOKENS = 96
"""Of a request, in training and when it is searched for."""
TRAINED_TOKENS = 224
"""Of a skill, in training."""
SEARCHED_TOKENS = 256
"""Of a skill, when it is searched for."""
