"""``fastmcp_server.py ROOT``: FastMCP's own provider of skills, with the extension."""

import sys

from fastmcp import FastMCP
from fastmcp.server.providers.skills import SkillsDirectoryProvider
from fastmcp.skills.extension import SkillsExtension

provider = SkillsDirectoryProvider(sys.argv[1], experimental_skills=True)
server = FastMCP("theirs", providers=[provider])
server.add_extension(SkillsExtension(providers=[provider]))
server.run(show_banner=False)
