"""An agent with skills over Anthropic's own client.

Run it in the root of the repository: ``python -m examples.frameworks.anthropic``. Set ANTHROPIC_API_KEY.
"""

from pathlib import Path

from anthropic import Anthropic

from prowess.adapters.anthropic import Skills

SKILLS = Path(__file__).resolve().parents[1] / "skills"


def main(client: Anthropic | None = None, source: Path = SKILLS, model: str = "claude-sonnet-5-5") -> str:
    """Ask the agent one question; return its answer."""
    messages = [{"role": "user", "content": "Profile this CSV file for me: which columns have gaps?"}]
    return Skills(source).run(client or Anthropic(), model=model, messages=messages).text


if __name__ == "__main__":
    print(main())
