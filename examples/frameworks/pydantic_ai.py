"""An agent of Pydantic AI with skills; a person decides on the terminal what may run.

Run it in the root of the repository: ``python -m examples.frameworks.pydantic_ai``.
"""

from collections.abc import Callable
from pathlib import Path

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.models import Model

from prowess.adapters.pydantic_ai import Skills


def main(
    model: Model | str = "openai:gpt-5",
    source: str | Path = "examples/skills",
    decide: Callable[[str], bool] = lambda text: input(f"{text}\nRun it? ") == "yes",
) -> str:
    """Ask one question; while the agent waits for approvals, ask the person, and return the answer."""
    agent = Agent(model, output_type=[str, DeferredToolRequests], capabilities=[Skills(source, scripts=True)])
    result = agent.run_sync("How many words has 'to be or not'?")
    while isinstance(asked := result.output, DeferredToolRequests):
        answers = {call.tool_call_id: decide(asked.metadata[call.tool_call_id]["text"]) for call in asked.approvals}
        decisions = asked.build_results(approvals=answers)
        result = agent.run_sync(message_history=result.all_messages(), deferred_tool_results=decisions)
    return result.output


if __name__ == "__main__":
    print(main())
