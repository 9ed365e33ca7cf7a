"""ForgetEval: templated cases that ask whether a memory forgets what it should and keeps the rest."""

from forget_datasets.forgeteval.generation import PROFILES, TOP_K, Profile, generate, make_case, stream_cases
from forget_datasets.rows import GeneratedCase

__all__ = ["PROFILES", "TOP_K", "GeneratedCase", "Profile", "generate", "make_case", "stream_cases"]
