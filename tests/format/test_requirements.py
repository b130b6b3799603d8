"""What a skill says it needs is read in the spellings of real files, and compared with the tools of an agent."""

from __future__ import annotations

import pytest

import prowess
from prowess.format.requirements import Requirements


def read(fields: str) -> Requirements:
    head = f"---\nname: greet\ndescription: Greets.\n{fields}\n---\nHello.\n"
    return prowess.parse_skill(head, check_dir=False, mode="lenient").skill.requires


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("license: MIT", Requirements()),
        ("allowed-tools: Bash(git:*) Read", Requirements()),
        ("requires:\n  tools: [look_up, 'Bash(git:*)', look_up]", Requirements(("look_up", "Bash(git:*)"))),
        ("requires: {tools: 'a, b'}", Requirements(("a", "b"))),
        ("requires:\n  mcp: [rube]", Requirements(servers=("rube",))),
        ("mcp-servers: [github, linear]", Requirements(servers=("github", "linear"))),
        ("mcpServers:\n  github:\n    command: npx", Requirements(servers=("github",))),
        ("requires:\n  env: [A_KEY, 'not a name', A_KEY]", Requirements(variables=("A_KEY",))),
        (
            "requires:\n  env:\n    - name: A_KEY\n      required: true\n    - name: B_KEY\n      required: false",
            Requirements(variables=("A_KEY",), optional=("B_KEY",)),
        ),
        (
            "metadata:\n  openclaw:\n    requires: {env: [X_KEY], tools: [browser]}\n    primaryEnv: X_KEY",
            Requirements(("browser",), variables=("X_KEY",)),
        ),
        ('metadata:\n  clawdbot: \'{"config":{"requiredEnv":["Y_KEY"]}}\'', Requirements(variables=("Y_KEY",))),
        ("required_environment_variables:\n  - name: Z_KEY\n    help: Get one.", Requirements(variables=("Z_KEY",))),
        ("prerequisites:\n  env_vars: [T_KEY]", Requirements(variables=("T_KEY",))),
        ("metadata:\n  hub:\n    secrets: [H_KEY]", Requirements(variables=("H_KEY",))),
        ("requires: docker", Requirements()),
        ("requires: {env: 3, tools: {a: {}}, mcp: []}", Requirements(("a",))),
        ("metadata:\n  x: '{broken'", Requirements()),
    ],
)
def test_requirements_are_read_in_the_spellings_in_use(fields: str, expected: Requirements) -> None:
    assert read(fields) == expected


@pytest.mark.parametrize(
    ("needs", "available", "absent"),
    [
        (Requirements(("Read",)), ["read"], ()),
        (Requirements(("Bash(git:*)",)), ["Bash"], ()),
        (Requirements(("mcp__github__*",)), ["mcp__github__create_issue"], ()),
        (Requirements(("web_search",)), ["web_fetch"], ("the tool web_search",)),
        (Requirements(servers=("rube",)), ["RUBE_SEARCH_TOOLS"], ()),
        (Requirements(servers=("my-server",)), ["mcp__my_server__list"], ()),
        (Requirements(servers=("my_server",)), ["my-server.list"], ()),
        (Requirements(servers=("git",)), ["github_list", "legit_x"], ("the MCP server git",)),
        (Requirements(servers=("a.*",)), ["abc_x"], ("the MCP server a.*",)),
    ],
)
def test_what_an_agent_does_not_have_is_named(
    needs: Requirements, available: list[str], absent: tuple[str, ...]
) -> None:
    assert needs.find_absent(available) == absent


def test_an_empty_variable_is_not_set() -> None:
    assert Requirements(variables=("A", "B", "C")).find_unset({"A": "1", "B": ""}) == ("B", "C")
