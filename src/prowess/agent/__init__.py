"""An agent of its own: it carries out a task with a model, skills, and three tools for a working folder."""
