"""Models and servers that play a part in tests. Nothing here leaves 127.0.0.1.

Script           a model that replies by role as scripted, in process or behind a `ChatServer`
ChatServer       a chat endpoint on 127.0.0.1 with a function in the place of the model
FaultServer      a `ChatServer` that fails on request, in every way that `EndpointFault` lists
RandomModel, AlwaysContinue, SameCall, UnknownTools, InventsKeys, ObeysDocuments      hostile models
synthesis_model  a model that can write a whole synthesis, in the documents' own words
WordAnswers      an instant answer model that only knows words
"""

from doubles.chat_server import ChatServer
from doubles.fault_replies import EndpointFault
from doubles.fault_server import FaultServer
from doubles.hostile_models import (
    AlwaysContinue,
    InventsKeys,
    ObeysDocuments,
    RandomModel,
    SameCall,
    UnknownTools,
)
from doubles.protocol import (
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
from doubles.replies import (
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
from doubles.script import Script, UnexpectedRequest, calls, no_calls
from doubles.synthesis_replies import synthesis_model
from doubles.word_answers import WordAnswers

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
