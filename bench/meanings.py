"""What each row of ``python -m bench`` means to somebody who uses Prowess; the report prints it below its table."""

from __future__ import annotations

MEANINGS = {
    # discovery
    "scan": "how long a program waits for its skills when it starts or reloads, with skills of many shapes",
    "growth of a skill's scan": "1 means that ten times as many skills take ten times as long, and no longer",
    "catalog.issues": "what it costs to check every skill of a library, as `prowess check` and `prowess doctor` do",
    "scan, even library (every value on one line, no files)": "the same as *scan* for skills of the commonest shape",
    "catalog.issues, even library (every value on one line, no files)": (
        "the same as *catalog.issues* for skills of the commonest shape"
    ),
    "scan, files not in the cache (by the clock)": (
        "how long you wait after a start of the machine, beside a program that reads the same files one after the other"
    ),
    "scan, real heads": "what discovery costs with frontmatter that people published, mistakes included",
    # conversations
    "skill.read_body()": "what it costs to read one skill's instructions in your own program",
    "load_skill, first call": "how long a model waits for the instructions of a skill",
    "load_skill, active already": "the same for a skill that the model loaded before",
    "load_skill, first call, all cores busy": "the same on a server that has other work",
    "growth of a load_skill call": "1 means that a model waits no longer in a large library than in a small one",
    "render_catalog": "what it costs to write the listing of skills for a system prompt",
    "prompt(), made for the first time, everything listed": "what the first turn of the first conversation costs",
    "prompt(), made for the first time, shortened to fit": "the same for a library that the budget shortens",
    "estimate_tokens of the listing": "what it costs to count how much of a context window a text takes",
    "a session and its prompt, of 10,000 sessions": "what each further conversation costs a web server",
    "each of them after a reload, over a live catalogue": "what an edited skill costs each open conversation",
    "prompt() and tools() again": "what each further turn of a conversation costs",
    "Session.restore, three active skills": "what it costs to go on with a conversation that was saved",
    "memory of the catalogue, by tracemalloc": "how much memory a library takes, as Python counts it",
    "memory of the catalogue, by growth of the process": "the same, as the system counts it",
    "the same after catalog.issues": "how much memory a library takes whose skills were checked",
    # starting
    "import prowess": "what the import adds to a program that does not use skills in this run",
    "import and first scan": "how much later a program starts because it has skills",
    "prowess --version": "how long the shortest command takes",
    "prowess list, in a pipe": "how long a script waits for a listing",
    "prowess list, on a terminal": "how long a person waits for a listing",
    "prowess demo (by the clock)": "how long the demonstration takes",
    # installing
    "installer.install (by the clock)": "how long an install takes beside a plain clone of the same repository",
    "installer.verify": "how long a check of every installed file takes, for example in CI",
    "installer.sync(locked=True), nothing to do": "how long CI takes to see that everything is installed",
    "prowess list": "how long a listing takes in a project with installed skills",
    "prowess prompt": "how long it takes to write the prompt of such a project",
    "installer.install of that many, each chosen": "how long it takes to install many skills of one source",
    "installer.outdated, each chosen (by the clock)": "how long you wait for news of many skills of one repository",
    "installer.update of 50 among 5,000, each chosen (by the clock)": "how long you wait for an update of a few skills",
    "installer.update of 50 among 5,000 of one install (by the clock)": "the same where one install has all of them",
    "lock file, each chosen skill of ten files": "how much of the lock file people review for each skill",
    "growth of the lock file": "1 means that a skill takes as many bytes in a large project as in a small one",
    # serving
    "server: start to first answer": "how much work a client's start of the server makes before it answers",
    "server: start to first answer, by the clock": "how long a client waits for that answer",
    "server: start to first tools/list": "how much work the server has until a model can be told its tools",
    "server: start to first tools/list, by the clock": "how long a client waits for the tools",
    "server: start to the first file, by the clock": "how long a client waits for the first file of a skill",
    "server: skills/list, all pages, first time": "what it costs a server to list every skill with its digests",
    "server: skills/get": "what one skill costs a server",
    "server: resources/read of one file": "what one file costs a server",
    "server: memory at the peak": "how much memory the server takes",
    "growth of a read": "1 means that a file of a large library costs no more than one of a small library",
    "a read on HTTP beside 1,000 idle clients, by the clock": (
        "how much longer a client waits while a thousand others only listen"
    ),
    # adapters
    "what skills add to a run: Pydantic AI": "what an agent of Pydantic AI pays for skills in a run of two requests",
    "what skills add to a run: Anthropic's client": "the same with Anthropic's client",
    "what skills add to a run: OpenAI's client": "the same with OpenAI's client",
    # the console
    "prowess ui, from its start to its first page": "how long you wait for the console of a large library",
    "a search, the slowest page while somebody types": "how long a page takes that follows what you type",
    "growth of the memory over 2,000 pages": "whether a console can stay open for days",
}


def explain_rows(names: list[str]) -> str:
    """Return a list in Markdown of what each of these rows means; raises ``KeyError`` for a row without a meaning."""
    return "".join(f"- **{name}**: {MEANINGS[name]}.\n" for name in dict.fromkeys(names))
