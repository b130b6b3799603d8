"""An agent of LangChain with skills.

Run it in the root of the repository: ``python -m examples.frameworks.langchain``.
"""

from pathlib import Path

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel

from prowess.adapters.langchain import Skills

SKILLS = Path(__file__).resolve().parents[1] / "skills"


def main(model: str | BaseChatModel = "anthropic:claude-sonnet-4-6") -> str:
    """Return what the agent answers to one request."""
    agent = create_agent(model, system_prompt="You help.", middleware=[Skills(SKILLS)])
    state = agent.invoke({"messages": ["Profile this CSV file: which columns have gaps?"]})
    return str(state["messages"][-1].text)


if __name__ == "__main__":
    print(main())
