"""Sites that ``prowess publish`` writes: every version of each skill, aliases, and one root that names it all."""
