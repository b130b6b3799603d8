"""Skills for agent frameworks: one module a framework, each with a class ``Skills`` that makes skills native there."""
