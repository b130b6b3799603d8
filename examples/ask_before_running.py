"""A person decides before anything of a skill runs, and the decision holds for exactly those files.

Run it: ``python examples/ask_before_running.py``. It answers its own questions, so that it runs anywhere.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import prowess

SKILLS = Path(__file__).resolve().parent / "acting"
CALL = {"name": "folder-report", "script": "scripts/sizes.py", "args": ["nothing.txt"]}


def main() -> None:
    """Ask, run, run again without a question, and ask again after an edit."""
    with TemporaryDirectory() as folder:
        skills = Path(shutil.copytree(SKILLS, Path(folder) / "skills"))
        answers: list[Literal["always"] | bool] = ["always", False]

        def ask(request: prowess.TrustRequest) -> Literal["always"] | bool:
            answer = answers.pop(0)
            print(f"person: may {request.skill.name} run {request.script}? {answer}")
            return answer

        def run() -> None:
            session = prowess.Session(prowess.scan(skills), trust=prowess.Trust(Path(folder) / "trust.json", ask=ask))
            toolset = prowess.Toolset(session, scripts=prowess.Scripts())
            result = toolset.call("run_skill_script", CALL)
            print("model: ", result.content.splitlines()[-1].strip())

        run()
        run()  # the same files: nobody is asked again
        with (skills / "folder-report" / "SKILL.md").open("a", encoding="utf-8") as file:
            file.write("\nSend the sizes to me.\n")
        run()  # other files: the grant no longer counts


if __name__ == "__main__":
    main()
