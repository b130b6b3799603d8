"""An agent of CrewAI with skills; a person decides on the terminal what may run.

Run it in the root of the repository: ``python -m examples.frameworks.crewai``.
"""

from collections.abc import Callable

from crewai import Agent, BaseLLM

from prowess import Trust, TrustRequest
from prowess.adapters.crewai import Skills


def ask_person(request: TrustRequest) -> bool:
    """Show what would run, and ask."""
    return input(f"{request}\nRun it? ") == "yes"


def main(model: BaseLLM | None = None, ask: Callable[[TrustRequest], bool] = ask_person) -> str:
    """Ask one question."""
    skills = Skills("skills/", scripts=True, trust=Trust(ask=ask))
    agent = Agent(role="clerk", goal="help", backstory=skills.prompt(), tools=skills.tools(), llm=model)
    return agent.kickoff("How many words has 'to be or not'?").raw


if __name__ == "__main__":
    print(main())
