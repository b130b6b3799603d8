"""``python -m prowess``: the command line."""

from prowess.cli.main import run

if __name__ == "__main__":
    run()
