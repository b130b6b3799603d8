"""An agent with skills over OpenAI's own client.

Run it in the root of the repository: ``python -m examples.frameworks.openai``. Set OPENAI_API_KEY.
"""

from pathlib import Path

from openai import OpenAI

from prowess.adapters.openai import Skills

SKILLS = Path(__file__).resolve().parents[1] / "skills"


def main(client: OpenAI | None = None, source: Path = SKILLS, model: str = "gpt-5.5") -> str:
    """Ask the agent one question; return its answer."""
    messages = [{"role": "user", "content": "Profile this CSV file for me: which columns have gaps?"}]
    return Skills(source).run(client or OpenAI(), model=model, messages=messages).text


if __name__ == "__main__":
    print(main())
