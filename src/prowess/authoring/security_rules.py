"""The patterns of ``check --security``: what ordinary skills hardly ever have, and what documentation has rightly.

Each is measured on real skills (``make bench-security``): one that ordinary skills match is not worth its place here.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, NamedTuple

from prowess.text.patterns import compile_pattern

if TYPE_CHECKING:
    from collections.abc import Callable


class SecurityRule(NamedTuple):
    """A pattern of one line that ordinary skills hardly ever have."""

    code: str
    message: str
    words: tuple[str, ...]
    """One of them, in lower case, is in whatever matches."""
    pattern: re.Pattern[str]
    is_harmless: Callable[[re.Match[str]], bool] = lambda _: False


def _any(*patterns: str) -> str:
    return f"(?:{'|'.join(patterns)})"


def _compile(*patterns: str, flags: int = 0) -> re.Pattern[str]:
    return compile_pattern("|".join(patterns), flags)


# -- parts of the patterns ---------------------------------------------------------------------------------------------

_SHELL = r"(?:sudo (?:-\w{1,3} )?)?(?:env )?(?:/(?:usr/)?bin/)?(?:ba|z|da|k)?sh\b"
_INTERPRETER = _any(_SHELL, r"(?:sudo )?(?:python[23]?|node|perl|ruby|php)\b(?! -m json)")
_DECODERS = _any("b64decode", "b32decode", "a85decode", "unhexlify", "decompress", "fromhex", "decodebytes", "atob")
_POWERSHELL_FETCH = _any("iwr", "irm", "Invoke-WebRequest", "Invoke-RestMethod", "DownloadString")
_HOME = r"(?:~|\$HOME|\$\{HOME\}|/root|/home/\w{1,32})?/?"
_SECRET_PATHS = _HOME + _any(
    *(r"\.ssh/(?:id_\w{2,12}|\*)", r"\.aws/credentials", r"\.netrc", r"\.npmrc", r"\.pypirc", r"\.git-credentials"),
    *(r"\.kube/config", r"\.docker/config\.json", r"\.config/gh/hosts\.yml", r"\.gnupg", r"/etc/(?:passwd|shadow)"),
    *(r"\.env\b", r"\.bash_history", r"\.zsh_history"),
)
_ENVIRONMENT = _any(
    *(r"dict\(os\.environ\)", r"os\.environ\.copy\(\)", r"os\.environ(?![.\[])", r"process\.env(?![.\[\w])"),
    *(r"\$\(env\)", r"\$\(printenv\)", "`env`", "`printenv`"),
)
_DROP_SITES = _any(
    *(r"webhook\.site", r"requestbin\.\w{2,5}", r"requestcatcher\.com", r"hookbin\.com", r"pipedream\.net"),
    *(r"beeceptor\.com", r"oast\.\w{2,6}", r"interact\.sh", r"interactsh\.com", r"burpcollaborator\.net"),
    *(r"dnslog\.cn", r"ceye\.io", r"transfer\.sh", r"0x0\.st", r"file\.io", r"temp\.sh", r"bashupload\.com"),
    *(r"gofile\.io", r"anonfiles\.com", r"pastebin\.com/(?:raw|api)", r"hastebin\.com/raw", r"termbin\.com"),
    *(r"ghostbin\.\w{2,4}", r"ix\.io", r"sprunge\.us"),
)
_TUNNELS = r"(?!x{3}|your|example|abc|my-)[\w-]{1,60}\." + _any(
    *(r"ngrok\.io", r"ngrok-free\.app", r"trycloudflare\.com", r"serveo\.net", r"localhost\.run", r"loca\.lt"),
)
_PLACEHOLDERS = _any(r"\$\{?\w{1,40}", r"<[\w-]{1,40}>", r"\bexample\.(?:com|org|net)\b", "localhost", r"127\.0\.0\.1")

_PUBLISHED_INSTALLERS = _compile(
    r"https?://(?:[\w-]{1,40}\.){0,3}"
    + _any(
        *(r"astral\.sh", r"rustup\.rs", r"nodesource\.com", r"bun\.sh", r"bun\.com", r"deno\.land", r"docker\.com"),
        *(r"brew\.sh", r"nixos\.org", r"sdkman\.io", r"pnpm\.io", r"volta\.sh", r"claude\.ai", r"ollama\.com"),
        *(r"fly\.io", r"railway\.(?:com|app)", r"vercel\.com", r"supabase\.com", r"google\.com", r"googleapis\.com"),
        *(r"microsoft\.com", r"aka\.ms", r"amazonaws\.com", r"helm\.sh", r"k3s\.io", r"python-poetry\.org"),
        *(r"pixi\.sh", r"mise\.run", r"starship\.rs", r"foundry\.paradigm\.xyz", r"solana\.com", r"anza\.xyz"),
        *(r"tailscale\.com", r"nextflow\.io", r"cursor\.com", r"chocolatey\.org", r"get\.scoop\.sh"),
    )
    + r"\b",
    r"raw\.githubusercontent\.com/"
    + _any("Homebrew", "nvm-sh", "ohmyzsh", "pyenv", "golangci", "anchore", "aquasecurity", "helm", "asdf-vm")
    + "/",
    _PLACEHOLDERS,
)
"""Installers that their own documentation tells people to run so, placeholders, and this machine."""

_KNOWN_INDEXES = _compile(
    *(r"pypi\.org", r"pythonhosted\.org", r"download\.pytorch\.org", r"pypi\.nvidia\.com", r"pypi\.ngc\.nvidia\.com"),
    *(r"registry\.npmjs\.org", r"npm\.pkg\.github\.com", r"registry\.yarnpkg\.com", r"registry\.npmmirror\.com"),
    *(r"pypi\.tuna\.tsinghua\.edu\.cn", r"mirrors\.\w{2,20}\.(?:edu\.cn|com)", r"[\w.-]{0,60}\.pkg\.dev"),
    *(r"[\w.-]{0,60}\.amazonaws\.com", r"[\w.-]{0,60}\.azure\.com", r"wheels\.vllm\.ai", r"data\.pyg\.org"),
    *(r"storage\.googleapis\.com", r"://\$", "://<", _PLACEHOLDERS),
)


def _is_private(match: re.Match[str]) -> bool:
    """Return whether an address is of this machine, of a private network, or of documentation."""
    try:
        return not ipaddress.ip_address(match[1]).is_global
    except ValueError:
        return True


# -- the rules ---------------------------------------------------------------------------------------------------------

RULES = (
    SecurityRule(
        "fetch-and-run",
        "fetches a program and runs it at once, whatever it is by then",
        ("curl", "wget", "fetch", "http", "iex", "invoke-", "urlopen"),
        _compile(
            r"\b(?:curl|wget|fetch|http)\b[^|;\n]{0,300}\|\s{0,4}(?:tee [^|\n]{1,60}\|\s{0,4})?" + _INTERPRETER,
            rf"(?:{_SHELL}|\bsource|(?<![\w.])\.)\s{{1,4}}(?:-c\s{{1,4}})?[\"']?(?:<\(|\$\(|`)\s{{0,4}}(?:curl|wget)\b"
            r"[^\n]{0,300}",
            r"\beval\s{1,4}[\"']?(?:\$\(|`)\s{0,4}(?:curl|wget)\b[^\n]{0,300}",
            rf"\b(?:iex|Invoke-Expression)\b[^\n]{{0,40}}\b{_POWERSHELL_FETCH}[^\n]{{0,300}}",
            rf"\b{_POWERSHELL_FETCH}\b[^|\n]{{0,300}}\|\s{{0,4}}(?:iex|Invoke-Expression)\b",
            r"(?<![\w.])(?:exec|eval)\((?:compile\()?\s{0,4}"
            r"(?:requests\.get|urllib\.request\.urlopen|urlopen|httpx\.get)\([^\n]{0,300}",
        ),
        lambda match: _PUBLISHED_INSTALLERS.search(match[0]) is not None,
    ),
    SecurityRule(
        "decode-and-run",
        "decodes text and runs what comes out, which nobody can read here",
        (
            *("base64", "openssl", "xxd", "rev", "gunzip", "zcat", "decode", "decompress", "hex", "atob", "buffer"),
            *("loads", "powershell"),
        ),
        _compile(
            r"\b(?:base64|openssl base64|openssl enc)\b[^|\n]{0,80}\s(?:-d|-D|--decode)\b[^|\n]{0,120}\|\s{0,4}"
            + _INTERPRETER,
            rf"\b(?:xxd|rev|gunzip|zcat)\b[^|\n]{{0,80}}\|\s{{0,4}}(?:base64 -d\s{{0,4}}\|\s{{0,4}})?{_SHELL}"
            r"(?=\s{0,4}(?:$|[;&|\"'`\n]))",
            r"(?<![\w.])(?:exec|eval)\((?:compile\()?\s{0,4}(?:__import__\([\"']\w{2,10}[\"']\)\.|\w{2,12}\.)?"
            + _DECODERS
            + r"\b",
            r"(?<![\w.])(?:eval|Function)\(\s{0,4}(?:atob|Buffer\.from)\(",
            r"\bpowershell(?:\.exe)?\b[^\n]{0,80}\s-(?:e|en|enc|encodedcommand)\s{1,4}[A-Za-z0-9+/=]{24}",
            r"(?<![\w.])(?:exec|eval)\(\s{0,4}(?:marshal|pickle)\.loads\(",
        ),
    ),
    SecurityRule(
        "reverse-shell",
        "gives a shell of this machine to another one",
        ("/dev/", "nc ", "ncat", "netcat", "mkfifo", "dup2", "pty.", "socat"),
        _compile(
            r"/dev/(?:tcp|udp)/[\w.$\{\}-]{1,100}/[\w$\{\}]{1,20}[^\n]{0,20}(?:0>&1|<&|>&)",
            r"\bsh\s{1,4}-i\b[^\n]{0,40}/dev/(?:tcp|udp)/",
            r"\b(?:nc|ncat|netcat)\b[^\n]{0,60}\s(?:-\w{0,6}[ec]|--exec|--sh-exec)\s{1,4}[\"']?"
            r"(?:/bin/|/usr/bin/|cmd|powershell)\w{0,12}",
            r"\bmkfifo\b[^\n]{0,120}\b(?:nc|ncat|netcat|telnet)\b",
            r"\bos\.dup2\(\s{0,4}\w{1,20}\.fileno\(\)",
            r"\bsocket\b[^\n]{0,120}\bpty\.spawn\(",
            r"\bsocat\b[^\n]{0,120}\bexec:[\"']?(?:/bin/)?(?:ba)?sh",
        ),
    ),
    SecurityRule(
        "posts-secrets",
        "sends files with secrets, or the whole environment, to a host",
        ("curl", "wget", "http", "axios", "fetch", "session", "client", "request", "nc", "xh "),
        _compile(
            rf"\b(?:curl|wget|http|xh)\b[^\n]{{0,200}}(?:@|--post-file[= ]|<\s{{0,2}}|\$\(cat ){_SECRET_PATHS}",
            rf"\bcat\s{{1,4}}{_SECRET_PATHS}[^|\n]{{0,60}}\|[^\n]{{0,60}}\b(?:curl|wget|nc|ncat)\b",
            r"(?:^|[;&|`(\s])(?:env|printenv|export -p)\s{0,4}\|[^\n]{0,80}\b(?:curl|wget|nc|ncat)\b",
            rf"\bcurl\b[^\n]{{0,200}}(?:-d|--data(?:-\w{{2,12}})?|-F)[= ][^\n]{{0,80}}{_ENVIRONMENT}",
            rf"\b(?:requests|httpx|session|client|axios)\.(?:post|put|request)\([^\n]{{0,200}}{_ENVIRONMENT}",
            r"\bfetch\([^\n]{0,200}JSON\.stringify\([^\n]{0,40}process\.env(?![.\[\w])",
            rf"\b(?:requests|httpx)\.(?:post|put)\([^\n]{{0,200}}open\([^\n]{{0,60}}{_SECRET_PATHS}",
            flags=re.MULTILINE,
        ),
    ),
    SecurityRule(
        "drop-site",
        "names a host where anybody can leave or collect data",
        (".",),
        _compile(rf"(?<![\w.-])(?:https?://)?(?:[\w-]{{1,60}}\.)?{_DROP_SITES}(?![\w-])", rf"://{_TUNNELS}(?![\w-])"),
    ),
    SecurityRule(
        "raw-address",
        "talks to a numeric address of the internet, and nobody can tell whose it is",
        ("://",),
        _compile(r"\b(?:https?|wss?|ftp|tcp)://(?:[^\s/@]{1,60}@)?(\d{1,3}(?:\.\d{1,3}){3})(?![\d.])"),
        _is_private,
    ),
    SecurityRule(
        "locked-archive",
        "unpacks an archive with a password, so that nobody can look into it before",
        ("unzip", "7z", "unrar", "extractall", "openssl"),
        _compile(
            r"\bunzip\b[^\n]{0,80}\s-P\s{0,4}[^\s-]",
            r"\b(?:7z[az]?|unrar)\s{1,4}[xe]\b[^\n]{0,80}\s-p[^\s-]",
            r"\.extractall\([^\n]{0,80}\bpwd\s{0,4}=\s{0,4}b?[\"']",
            r"\bopenssl\b[^\n]{0,80}\s-d\b[^\n]{0,80}-(?:k|pass)\s[^\n]{0,80}\|\s{0,4}tar\b",
        ),
    ),
    SecurityRule(
        "foreign-index",
        "installs packages from an index that is not the usual one",
        ("index", "registry", "-i "),
        _compile(
            r"\b(?:pip3?|uv|pipx|npm|pnpm|yarn|bun|poetry)\b[^\n]{0,120}\s--?"
            r"(?:i|index-url|extra-index-url|index|default-index|registry)[= ][\"']?(https?://[^\s\"'`]{3,200})",
            r"\b(?:PIP_INDEX_URL|PIP_EXTRA_INDEX_URL|UV_INDEX_URL|npm_config_registry)=[\"']?"
            r"(https?://[^\s\"'`]{3,200})",
        ),
        lambda match: _KNOWN_INDEXES.search(match[1] or match[2]) is not None,
    ),
)

ORDER_IN_COMMENT = _compile(
    r"\b(?:ignore|disregard|forget) (?:all |any |the |your |these )?"
    r"(?:previous|prior|earlier|above|other|system|safety)\b",
    r"\b(?:do not|don't|never|without) (?:tell|mention|inform|ask|show|notify|alert)(?:ing)?"
    r"(?: it| this| that)?(?: to)? (?:the |any )?(?:user|human|person|operator|anyone)\b",
    r"\b(?:secretly|silently|covertly|quietly) (?:run|send|execute|read|upload|post|copy|include|add|collect|append)\b",
    r"\b(?:run|execute)\b[^\n]{0,40}\b(?:curl|wget|bash|sh -c|python -c|base64)\b",
    r"\b(?:send|post|upload|exfiltrate)\b[^\n]{0,80}\b(?:to|at) https?://",
    flags=re.IGNORECASE,
)
"""An order to a model in a comment, which a reader of the page does not see."""

_REQUESTS = _any(
    *("requests?", "messages?", "tasks?", "prompts?", "query", "queries", "questions?", "conversations?"),
    *("responses?", "interactions?", "sessions?", "turn"),
)
_NARROWING = _any(
    *("about", "that", "related", "involving", "with", "to", "in", "for", "where", "on", "of", "which", "regarding"),
    *("concerning", "requiring", "using", "needing", "from", "matching", "like", "when", "if"),
)
CLAIM = _compile(
    r"\b(?:use|invoke|load|activate|apply|run|call|trigger|read|consult)(?:d|s)? (?:this|it|the) ?(?:skill )?"
    r"(?:first )?(?:for|on|in|at|before|with) (?:the start of )?"
    r"(?:every|each|all|any)(?: single)?(?: and every)? (?:user )?"
    rf"{_REQUESTS}\b(?! {_NARROWING}\b)",
    r"\b(?:always|must) (?:be )?(?:use|load|invoke|activate|run|call)(?:e?d)? (?:this skill |this |it )?"
    r"(?:first|before (?:anything|any other|every other|all other|everything))\b",
    r"\btakes? (?:precedence|priority) over (?:all|any|every) (?:other )?skills?\b",
    flags=re.IGNORECASE,
)
"""A description that claims every request, and not only those that it is for."""
