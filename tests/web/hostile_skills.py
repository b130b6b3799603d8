"""Skills whose every part is hostile to a page that shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg/onload=alert(3)>{{7*7}}{% raw %}\u202egnp.exe"
MARKDOWN = """
# <script>alert(1)</script>

<script>alert(1)</script> <img src=x onerror=alert(1)> <iframe src="https://evil.example"></iframe>

[click](javascript:alert(1)) [data](data:text/html,<script>alert(1)</script>) [file](file:///etc/passwd)
[proto](//evil.example/x) [root](/outdated) [out](https://evil.example/page) [vb](vbscript:x)
![pixel](https://evil.example/pixel.png) ![data](data:image/svg+xml;base64,PHN2Zz4=) ![up](../../x.png)
<https://evil.example/auto> [ref]

[ref]: javascript:alert(1) "title"

| a | b |
|---|--:|
| <b onclick=x> | 2 |

<form action="/outdated" method="post"><button>OK</button></form>
<style>@import url(https://evil.example)</style><base href="https://evil.example"><meta http-equiv=refresh content=0>
"""


def write_hostile_skills(folder: Path) -> None:
    """Write a hostile skill, a copy that it shadows, and one that does not load, below a folder."""
    skill = folder / "evil"
    (skill / "scripts").mkdir(parents=True)
    (skill / "evals").mkdir()
    quoted = EVIL.replace("\\", "\\\\").replace('"', '\\"').replace("\u202e", "\\u202e")
    (skill / "SKILL.md").write_text(
        f'---\nname: evil\ndescription: "{quoted}"\nlicense: "{quoted}"\nmetadata:\n  "{quoted}": "{quoted}"\n'
        f'"{quoted}": "{quoted}"\n---\n{MARKDOWN}\nRun !`echo {EVIL}`.\nSee references/{EVIL}.\n',
        encoding="utf-8",
    )
    (skill / "scripts" / "<img src=x onerror=alert(1)>.py").write_text(EVIL, encoding="utf-8")
    (skill / "a\u202egnp.exe").write_text(EVIL, encoding="utf-8")
    (skill / "picture.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", encoding="utf-8")
    (skill / "page.html").write_text("<script>alert(1)</script>", encoding="utf-8")
    (skill / "evals" / "t.json").write_text('[{"query": "<script>alert(1)</script>"}]', encoding="utf-8")
    broken = folder / "<b>broken"
    broken.mkdir()
    (broken / "SKILL.md").write_text(f"---\nname: {EVIL}\n  x: [\n---\n", encoding="utf-8")
    copy = folder / "z" / "evil"
    copy.mkdir(parents=True)
    (copy / "SKILL.md").write_text('---\nname: evil\ndescription: "<script>x</script>"\n---\nx\n', encoding="utf-8")
