"""Our tokenizer beside the package ``tokenizers``: ``python -m bench.wordpiece BASE`` compares the ids of every text.

BASE is the folder of the base model, with ``tokenizer.json`` and ``vocab.txt``. The texts are those of the optional
data folder beside the checkout. The other package is installed into an environment of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.encoders import measure_install
from bench.environments import python_with
from bench.measure import CHECKOUT, clean_environment
from prowess_retriever.wordpiece import Tokenizer
from training.data import describe_skill, read_records

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = CHECKOUT.parent / "shared" / "retrieval"
FILES = ("queries.jsonl", "skills.jsonl.xz", "train.jsonl.xz")
NO_LIMIT = 10**9
# Texts come as lines of JSON; each answer is the seconds of CPU so far and the ids.
THEIRS = """
import json, sys, time
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file(sys.argv[1])
tokenizer.no_truncation()
tokenizer.no_padding()
seconds = 0.0
for line in sys.stdin:
    text = json.loads(line)
    begin = time.process_time()
    ids = tokenizer.encode(text).ids
    seconds += time.process_time() - begin
    print(json.dumps([seconds, ids]), flush=True)
"""


def read_texts() -> Iterator[str]:
    """Every request and every skill of the data folder."""
    for name in FILES:
        for record in read_records(DATA / name):
            yield record["query"] if "query" in record else describe_skill(record)


def compare_tokenizers(base: Path) -> str:
    """Return a sentence: how many texts there were, how many have other ids, and what each tokenizer took."""
    ours = Tokenizer((base / "vocab.txt").read_text(encoding="utf-8").splitlines())
    command = [python_with("tokenizers"), "-c", THEIRS, str(base / "tokenizer.json")]
    texts = characters = different = 0
    our_seconds = their_seconds = 0.0
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=clean_environment()
    ) as process:
        assert process.stdin
        assert process.stdout
        for text in read_texts():
            process.stdin.write(f"{json.dumps(text)}\n")
            process.stdin.flush()
            their_seconds, expected = json.loads(process.stdout.readline())
            begin = time.process_time()
            ids = ours.encode(text, NO_LIMIT)
            our_seconds += time.process_time() - begin
            texts += 1
            characters += len(text)
            different += ids != expected
    return (
        f"{texts:,} texts with {characters:,} characters: {different:,} have other ids. "
        f"Ours took {our_seconds:.0f} s of CPU, tokenizers {their_seconds:.0f} s. "
        f"tokenizers installs {measure_install('tokenizers') / 1e6:,.0f} MB."
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.wordpiece", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("base", type=Path, help="the folder of the base model")
    options = parser.parse_args(arguments)
    if not DATA.is_dir():
        raise SystemExit("there is no ../shared/retrieval beside the checkout: nothing to compare")
    print(compare_tokenizers(options.base))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
