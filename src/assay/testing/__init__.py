"""Instruments for tests, of Assay and of what is built on it: models that follow a script, misbehave or fail; no network.

Script       a model that says what it is told to, by role        (in process, or behind a ChatServer)
ChatServer   a chat endpoint on the loopback, with a function in the model's place
FaultServer  the same, going wrong on request: every `Fault` that endpoints have
AtRandom, AlwaysContinue, SameCall, UnknownTools, InventsKeys, Obedient      models that mean no good
reviewer     a model that can write a whole synthesis, in the documents' own words
WordEmbedder an embedder that knows words and nothing else
"""

from assay.testing.chat import ChatServer
from assay.testing.faults import FaultServer
from assay.testing.hostile import AlwaysContinue, AtRandom, InventsKeys, Obedient, SameCall, UnknownTools
from assay.testing.misbehaviour import Fault
from assay.testing.protocol import (
    Action,
    Call,
    Calls,
    Http,
    keys_in,
    passages_in,
    role_of,
    schema_of,
    text_of,
    tools_of,
)
from assay.testing.replies import (
    complete,
    direct,
    drops,
    enough,
    gap,
    hedges,
    keeps,
    lookup,
    missing,
    one_step,
    research,
    rewrites,
    says,
    steps,
    supported,
    verdicts,
    writes,
)
from assay.testing.reviewer import reviewer
from assay.testing.scripted import Script, Unexpected, calls, rests
from assay.testing.words import WordEmbedder

__all__ = [
    "Action",
    "AlwaysContinue",
    "AtRandom",
    "Call",
    "Calls",
    "ChatServer",
    "Fault",
    "FaultServer",
    "Http",
    "InventsKeys",
    "Obedient",
    "SameCall",
    "Script",
    "Unexpected",
    "UnknownTools",
    "WordEmbedder",
    "calls",
    "complete",
    "direct",
    "drops",
    "enough",
    "gap",
    "hedges",
    "keeps",
    "keys_in",
    "lookup",
    "missing",
    "one_step",
    "passages_in",
    "research",
    "rests",
    "reviewer",
    "rewrites",
    "role_of",
    "says",
    "schema_of",
    "steps",
    "supported",
    "text_of",
    "tools_of",
    "verdicts",
    "writes",
]
