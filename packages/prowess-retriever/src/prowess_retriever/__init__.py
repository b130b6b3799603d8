r"""The encoder behind Prowess's search by meaning: requests and skills become vectors that can be compared.

    from prowess_retriever import load_encoder

    encoder = load_encoder()
    vectors = encoder.encode_skills(["pdf forms\nFill in PDF forms."])
    print(vectors @ encoder.encode_requests(["complete this application form"])[0])

It reads only the files of its own package, uses no network, and starts threads only while it encodes skills.
"""

from __future__ import annotations

from prowess_retriever.encoder import SkillEncoder, load_encoder
from prowess_retriever.model_files import WeightsError

__all__ = ["SkillEncoder", "WeightsError", "load_encoder"]
__version__ = "0.1.0"
