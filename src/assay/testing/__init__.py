"""Test models and servers, for Assay and for what is built on it. Nothing here leaves 127.0.0.1.

Script           a model that replies by role as scripted, in process or behind a `ChatServer`
ChatServer       a chat endpoint on 127.0.0.1 with a function in the place of the model
FaultServer      a `ChatServer` that fails on request, in every way that `EndpointFault` lists
RandomModel, AlwaysContinue, SameCall, UnknownTools, InventsKeys, ObeysDocuments      hostile models
synthesis_model  a model that can write a whole synthesis, in the documents' own words
WordAnswers      an instant answer model that only knows words
WordEmbedder     an instant embedder that only knows words
"""

from assay.testing.chat_server import ChatServer
from assay.testing.fault_replies import EndpointFault
from assay.testing.fault_server import FaultServer
from assay.testing.hostile_models import (
    AlwaysContinue,
    InventsKeys,
    ObeysDocuments,
    RandomModel,
    SameCall,
    UnknownTools,
)
from assay.testing.protocol import (
    ConnectionAction,
    HttpReply,
    ScriptedCall,
    ScriptedCalls,
    keys_in,
    passages_in,
    role_of,
    schema_of,
    text_of,
    tools_of,
)
from assay.testing.replies import (
    argues,
    beside_the_point,
    direct,
    drops,
    enough,
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
from assay.testing.script import Script, UnexpectedRequest, calls, no_calls
from assay.testing.synthesis_replies import synthesis_model
from assay.testing.word_answers import WordAnswers
from assay.evaluate.plain_text import WordEmbedder

__all__ = [
    "AlwaysContinue",
    "ChatServer",
    "ConnectionAction",
    "EndpointFault",
    "FaultServer",
    "HttpReply",
    "InventsKeys",
    "ObeysDocuments",
    "RandomModel",
    "SameCall",
    "Script",
    "ScriptedCall",
    "ScriptedCalls",
    "UnexpectedRequest",
    "UnknownTools",
    "WordAnswers",
    "WordEmbedder",
    "argues",
    "beside_the_point",
    "calls",
    "direct",
    "drops",
    "enough",
    "hedges",
    "keeps",
    "keys_in",
    "lookup",
    "missing",
    "no_calls",
    "one_step",
    "passages_in",
    "research",
    "rewrites",
    "role_of",
    "says",
    "schema_of",
    "steps",
    "supported",
    "synthesis_model",
    "text_of",
    "tools_of",
    "verdicts",
    "writes",
]
