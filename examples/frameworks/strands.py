"""An agent of Strands with skills; a person decides on the terminal what may run.

Run it in the root of the repository: ``python -m examples.frameworks.strands``.
"""

from collections.abc import Callable

from strands import Agent
from strands.models import Model

from prowess.adapters.strands import Skills


def main(
    model: Model | None = None, decide: Callable[[str], bool] = lambda text: input(f"{text}\nRun it? ") == "yes"
) -> str:
    """Ask one question, and whenever the agent stops for an approval, ask the person."""
    agent = Agent(model=model, plugins=[Skills("skills/", scripts=True)], callback_handler=None)
    result = agent("How many words has 'to be or not'?")
    while result.stop_reason == "interrupt":
        answers = [(each.id, decide(each.reason["text"])) for each in result.interrupts]
        result = agent([{"interruptResponse": {"interruptId": key, "response": yes}} for key, yes in answers])
    return str(result).strip()


if __name__ == "__main__":
    print(main())
