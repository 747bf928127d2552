"""Detects text that reads like an instruction to a model, and carries that flag from passages to claims. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from assay.core.printable import clean_text
from assay.core.types import Claim, Evidence


@dataclass(frozen=True, slots=True)
class InjectionSign:
    """One kind of text that addresses a model instead of a reader. `order`: it is certainly a command, so the sentence
    states nothing. The pattern is tried only if one of the `hints` occurs, because every retrieved passage is checked.
    """

    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    order: bool = False


def _sign(hints: str, *patterns: str, order: bool = False) -> InjectionSign:
    return InjectionSign(tuple(hints.split("/")), re.compile("|".join(patterns), re.I | re.S), order)


_REPLY = r"(?:answers?|repl(?:y|ies)|responses?|outputs?|summar(?:y|ies)|completions?)"
_CHANGES = (
    r"(?:add|append|attach|prepend|insert|include|integrate|incorporate|embed|mention|modify|alter|adapt|change|convert"
    r"|replace|substitute|swap|rearrange|reorder|shuffle|scramble|reverse|misspell|encode|encrypt|translate|remove|delete"
    r"|omit|drop|introduce|group|use|employ|apply|begin|start|open|end|finish|close|conclude|write|provide|limit|restrict)"
)
_OPENS = r"(?:^|[.!?:;\n\"”]\s*|\b(?:please|must|always)\s+)"  # where a command begins
_NO_ORDER = (  # words that open a sentence which is not a command
    r"(?!(?:i|we|he|she|it|they|you|the|this|that|these|those|there|your|our|my|if|when|as|no|not|a|an|thanks?|looking|any|all"
    r"|is|are|was|were|what|which|who|how|why|do|does|did|has|have|on|in|at|for|with|and|but|or|so)\b)"
)
_ON = r"(?:[^.!?\n]|[.!?](?!\s)){0,160}"  # the rest of the sentence; the dots of an address do not end it
SIGNS: tuple[InjectionSign, ...] = (
    _sign(  # tells its reader to set aside what it was told
        "ignor/disregard/forget/overr/bypass/system prompt",
        r"\b(?:ignore|disregard|forget|override|overrule|bypass)\b.{0,40}\b(?:instruction|prompt|rule|direction)s?\b",
        r"\bsystem prompt\b",
        order=True,
    ),
    _sign(  # tells its reader to set aside what it was told
        "ignor/disregard/forget/overr/bypass/not follow/stop foll/system m/system i/new instr/new task/new direct/oubli/olvid"
        "/игнорир/忽/无视/無視",
        r"\b(?:ignore|disregard|forget|override|overrule|bypass|do not follow|stop following)\b.{0,60}"
        r"\b(?:instruct|prompt|rule|direction|guideline|polic|constraint|restriction|everything (?:above|before))\w*",
        r"\bsystem (?:message|instruction)s?\b",
        r"\bnew (?:instruction|task|directive)s?\s*:",
        # the same command in other languages
        r"\bignorier\w*\b.{0,40}\b(?:anweisung|vorgabe|befehl|regel)\w*",
        r"\b(?:ignor|oubli)(?:e|es|ez|er)\b.{0,40}\b(?:instruction|consigne|règle|regle)s?\b",
        r"\b(?:ignor|olvid)(?:a|e|en|ad|ar)\b.{0,40}\b(?:instruccion|regla|orden)\w*",
        r"\bignor(?:a|e|ate|are|em)\b.{0,40}\b(?:istruzion|instruções|instrucoes|regol|regra)\w*",
        r"игнорир\w+.{0,40}(?:инструкци|указани)\w*",
        r"(?:忽略|忽視|无视|無視).{0,12}(?:指令|指示|提示|规则|規則)",
        r"(?:指示|命令|プロンプト).{0,8}無視",
    ),
    _sign(  # dictates what is to be said
        " only/exactly/nothing but",
        r"\b(?:answer|reply|respond|say|output) (?:only|exactly|nothing but)\b.{0,10}[\"“'‘]",
        order=True,
    ),
    _sign(  # dictates what is to be said
        "instead/now/ only/exactly/nothing but/verbatim/ask/the user/the person/the reader/the human",
        r"\b(?:instead|now),? (?:answer|reply|respond|say|output|write)\b.{0,20}[\"“':]",
        r"\b(?:answer|reply|respond|say|output|write|print) (?:only|exactly|nothing but|verbatim)\b.{0,10}[\"“':]",
        r"\b(?:when(?:ever)?|if) (?:you are |you're |anyone |somebody |someone |the user |a user |they )?ask(?:s|ed)?\b.{0,120}"
        r"\b(?:please |you must |always |simply |just )(?:say|answer|reply|respond|output|tell|state|print)\b",
        r"\b(?:do not|don't|never) (?:tell|inform|(?:mention|reveal) (?:this|it) to) the (?:user|person|reader|human)\b",
        r"\bwithout (?:telling|informing|alerting) the (?:user|person|reader|human)\b",
    ),
    _sign(  # says how a reply is to be written
        "your ",
        rf"{_OPENS}{_CHANGES}\b{_ON}\b(?:to|of|from|for|with|on|as part of) (?:each of )?your (?:\w+ )?{_REPLY}\b",
        rf"{_OPENS}{_NO_ORDER}\w+\b{_ON}\b(?:in|into|within|throughout) (?:each of )?your (?:\w+ )?{_REPLY}\b",
        rf"{_OPENS}{_NO_ORDER}\w+ (?:all |each of )?your (?:\w+ )?{_REPLY} "
        r"(?:with|by \w+ing|using|into|as|so that|such that|in|without|to (?!the\b|us\b|me\b|our\b|my\b|this\b|an?\b|it\b))\b",
        rf"{_OPENS}in (?:each of )?your (?:\w+ )?{_REPLY},? {_NO_ORDER}\w+",
    ),
    _sign(  # speaks to an assistant
        "assistant/chatbot/language model/llm/ai, /ai: /ai you/ an ai/as ai/are ai/be ai/now ai/dan/note to/message "
        "/instruction/dear /attention/system:/system :/<|/inst]/sys>/_of_turn/##/developer m/god m/jail",
        r"\b(?:you are|act as|pretend to be|behave as) (?:now )?(?:a |an |the )?(?:helpful )?"
        r"(?:ai|ai assistant|assistant|chatbot|language model|llm|dan)\b",
        r"\b(?:assistant|ai|llm|language model|chatbot|model)s?\b(?:[,:] (?:you )?| you )"
        r"(?:must|should|shall|please|will now|need to)\b",
        r"\b(?:dear|attention|note to|message (?:to|for)|instructions? (?:to|for)) (?:the |any |all )?"
        r"(?:ai|llm|assistant|language model|chatbot|model)s?\b",
        r"(?:^|[.!?]\s+)(?:system|assistant)\s*:",
        r"<\|\w+\|>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>|(?:^|\n)#{2,}\s*(?:system|instruction)s?\s*:",
        r"\b(?:developer|god|jailbreak|dan) mode\b",
    ),
    _sign(  # asks for what is secret
        "prompt/key/password/secret/credential/token/conversation/history/http/www",
        r"\b(?:reveal|print|output|repeat|send|exfiltrate|post|leak|disclose|forward|show)\b.{0,40}"
        r"\b(?:prompt|api[ _-]?key|password|secret|credential|access token|conversation|chat history)s?\b",
        r"\b(?:send|post|upload|forward|exfiltrate|transmit)\b.{0,80}\b(?:to|at) (?:https?://|www\.)",
        r"!\[[^\]\n]{0,80}\]\(\s*https?://[^)\s]{0,300}[?&=#{]",
    ),
    _sign(  # names tools or verdicts
        "call the/invoke the/claim/passage/document/source/evidence/is need/is necess",
        r"\b(?:call|invoke) the (?:tool|function)\b",
        r"\b(?:mark|rate|score|judge|rule|treat) (?:every|each|all|any|this|these|the) "
        r"(?:claim|passage|document|source|evidence)s?\b.{0,40}\b(?:as|with|supported|true|relevant|10|ten)\b",
        r"\bno (?:further |more )?(?:search|look-?up) is (?:needed|necessary)\b",
    ),
)
# Letters of other alphabets that look like Latin ones and are used to evade filters.
_LOOKALIKE = str.maketrans(
    "асеорхуіѕјһԁԛԝгтмквнАСЕОРХУІЅЈТМКВНοαερικντυΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aceopxyisjhdqwrtmkbhACEOPXYISJTMKBHoaepikvtuABEZHIKMNOPTYX",
)
_MIXED = re.compile(r"[a-z][а-яѐ-ӿα-ω]|[а-яѐ-ӿα-ω][a-z]", re.I)
_SPACED = re.compile(r"\b(?:\w[ .*_-]){4,}\w\b")


@lru_cache(maxsize=8192)
def _find_signs(words: str) -> tuple[InjectionSign, ...]:
    plain = unicodedata.normalize("NFKC", clean_text(words))
    if _MIXED.search(plain):
        plain = plain.translate(_LOOKALIKE)
    if _SPACED.search(plain):
        plain = _SPACED.sub(lambda match: re.sub(r"[ .*_-]", "", match[0]), plain)
    lower = plain.lower()
    return tuple(sign for sign in SIGNS if any(hint in lower for hint in sign.hints) and sign.pattern.search(plain))


def is_suspicious(words: str) -> bool:
    """Whether a passage reads like an instruction to a model. The flag follows the passage to the claims that it supports.
    The rules do not find every attack; text they miss is still fenced, checked and unable to act."""
    return bool(_find_signs(words))


def is_command(words: str) -> bool:
    """Whether a sentence is certainly a command to a model: it then states nothing and answers no question."""
    return any(sign.order for sign in _find_signs(words))


TAINT_REASON = "it rests only on what reads like an instruction to a model"


def is_tainted(claim: Claim, evidence: Iterable[Evidence]) -> bool:
    """Whether a claim rests only on passages that read like an instruction to a model."""
    flags = [each.flagged for each in evidence if each.key in claim.cites]
    return bool(flags) and all(flags)


def note_taint(claim: Claim, evidence: Iterable[Evidence]) -> Claim:
    """The claim with the taint added to its `why`, so that it is recorded and shown wherever the claim is."""
    if not is_tainted(claim, evidence):
        return claim
    return replace(claim, why=f"{claim.why}; {TAINT_REASON}" if claim.why else TAINT_REASON)
