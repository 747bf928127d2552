"""Ask a model for a typed value. The prompt is built to fit the model's window, the reply is parsed strictly, and an invalid
reply is retried with its exact error. `choose` does the same for tool calls. Each request is a pure function of the prompt and
the recorded replies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from assay import prompts
from assay.core.errors import ModelError, TooLong
from assay.core.events import Fallback, ModelReplied, RoleModel
from assay.models import replies
from assay.models.cost import prompt_tokens
from assay.models.llm import Form, Heard, Message, Prompt, Role, ShownPicture, ToolSpec
from assay.models.meter import ConnectedModel, Meter, NoReply, request_digest
from assay.models.replies import ToolChoice, UnreadableReply

if TYPE_CHECKING:
    from pydantic import BaseModel

T = TypeVar("T", bound="BaseModel")
V = TypeVar("V")
Layout = Callable[[int], Mapping[str, str]]  # values of the template's placeholders, within a token budget

AGAIN = 3  # retries in which the model is shown what is wrong with its reply
NARROWER = 3  # times that a prompt is rebuilt smaller because it did not fit
SHOWN = 1000  # characters of a faulty reply, and of its error, that are quoted back
ONE_OBJECT = "Reply with one JSON object"
REPLY_SHARE = 3  # a reply may take a third of the window, and one that is asked for again a half
UNKNOWN_WINDOW = 8192  # tokens assumed when the window is unknown
SHRINK, UNSAID, SMALLEST = 0.88, 4, 256  # 0.88 ** 4 is 0.6: the step when the endpoint does not state its window


async def ask(
    meter: Meter,
    role: Role,
    name: str,
    kind: type[T],
    build_prompt: Layout,
    *,
    check: Callable[[T], str] = lambda _: "",
    schema: Mapping[str, Any] | None = None,
    documents: Sequence[str] = (),
    max_tokens: int = 1024,
    heard: Heard | None = None,
    pictures: Sequence[ShownPicture] = (),
) -> tuple[T, str] | NoReply:
    """A value of type `kind` and its origin (`prompt@model`), or `NoReply` with the reason.

    name: the prompt's file
    check: returns an error message for the model, or an empty string if the value is valid
    schema: replaces the type's own JSON schema, to say more than the type can
    documents: ids of the documents quoted in the prompt
    heard: gets the reply while it is written, if the model can be heard; one that is recorded is not heard
    """
    wanted = replies.schema_of(kind) if schema is None else replies.standalone_schema(schema)

    def frame(role_model: RoleModel) -> _Frame:
        asks = "" if ONE_OBJECT in prompts.template(name) else f"{ONE_OBJECT}."
        words = asks if role_model.schema else replies.schema_instructions(wanted)
        return _Frame(words, _form_of(role_model), wanted)

    def value(consulted: ModelReplied, _: RoleModel) -> T:
        return replies.read(kind, consulted.text)

    return await _first_that_answers(
        meter,
        _Question(role, name, build_prompt, frame, value, check, tuple(documents), max_tokens, heard, tuple(pictures)),
    )


async def choose(
    meter: Meter,
    name: str,
    build_prompt: Layout,
    tools: Sequence[ToolSpec],
    *,
    check: Callable[[ToolChoice], str] = lambda _: "",
    documents: Sequence[str] = (),
    max_tokens: int = 1024,
) -> tuple[ToolChoice, str] | NoReply:
    """Which tools to call next: by native tool calls if the endpoint supports them, else by one JSON object."""
    schema = replies.choice_schema(tools)

    def frame(role_model: RoleModel) -> _Frame:
        if role_model.tools:
            return _Frame("", "text", None, tuple(tools))
        return _Frame(replies.choice_instructions(tools), _form_of(role_model), schema)

    def value(consulted: ModelReplied, role_model: RoleModel) -> ToolChoice:
        return replies.parse_choice(consulted, native=role_model.tools)

    return await _first_that_answers(
        meter, _Question(Role.decide, name, build_prompt, frame, value, check, tuple(documents), max_tokens)
    )


_Fault = tuple[str, str]  # a reply that could not be used, and its error


def _form_of(role_model: RoleModel) -> Form:
    return "schema" if role_model.schema else "json" if role_model.json else "text"


@dataclass(frozen=True, slots=True)
class _Frame:
    """How a reply's form is requested: the text added to the prompt, and the parameters sent to the endpoint."""

    words: str
    form: Form
    schema: Mapping[str, Any] | None
    tools: tuple[ToolSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class _Question(Generic[V]):
    role: Role
    name: str
    build_prompt: Layout
    frame: Callable[[RoleModel], _Frame]
    value: Callable[[ModelReplied, RoleModel], V]  # raises UnreadableReply
    check: Callable[[V], str]
    documents: tuple[str, ...]
    max_tokens: int
    heard: Heard | None = None
    pictures: tuple[ShownPicture, ...] = ()


@dataclass(frozen=True, slots=True)
class _Talk(Generic[V]):
    """One conversation with one model: the question and the faulty replies so far."""

    question: _Question[V]
    connected: ConnectedModel
    temperature: float
    max_tokens: int
    faults: tuple[_Fault, ...] = ()

    def window(self, rung: int) -> int:
        """The window at a rung of a ladder of sizes. A replay cannot ask the endpoint for its limit, so it tries every rung."""
        return int((self.connected.role_model.window or UNKNOWN_WINDOW) * SHRINK**rung)


async def _first_that_answers(meter: Meter, question: _Question[V]) -> tuple[V, str] | NoReply:
    models = meter.models.get(question.role, ())
    for place in range(_carried_on_by(meter, question, models), len(models)):
        try:
            return await _converse(meter, models[place], question)
        except ModelError:
            if place + 1 == len(models):
                raise
    raise LookupError(f"no model has the role {question.role}")


def _carried_on_by(meter: Meter, question: _Question[Any], models: Sequence[ConnectedModel]) -> int:
    """The index of the last model with a recorded reply to this question. Those before it failed, and are not asked again."""
    for place in range(len(models) - 1, 0, -1):
        talk = _Talk(question, models[place], meter.temperature, question.max_tokens)
        prompt = _prompt(talk, meter.narrowed.get(models[place].role_model.model, 0))
        known = meter.recorded_reply(request_digest(question.role, question.name, prompt)) if prompt else None
        if known and known.model == models[place].role_model.model:
            return place
    return 0


async def _converse(meter: Meter, connected: ConnectedModel, question: _Question[V]) -> tuple[V, str] | NoReply:
    talk = _Talk(question, connected, meter.temperature, question.max_tokens)
    wrong = ""
    for _ in range(1 + AGAIN):
        consulted = await _sent(meter, talk)
        if isinstance(consulted, NoReply):
            return consulted
        try:
            value = question.value(consulted, connected.role_model)
            wrong = question.check(value)
            if not wrong:
                return value, f"{question.name}@{consulted.model}"
        except UnreadableReply as error:
            wrong = str(error)
        most = talk.max_tokens
        if consulted.finish == "length":
            wrong = f"it is longer than it may be and was cut off. Be much shorter. ({wrong})"
            most *= 1 if connected.role_model.small else 2  # a small model tends to repeat itself until the limit
        fault = (_cut(replies.reply_text(consulted)) or "(nothing)", _cut(wrong))
        talk = _Talk(question, connected, talk.temperature, most, (*talk.faults, fault))
    return NoReply(Fallback.unusable, wrong)


async def _sent(meter: Meter, talk: _Talk[Any]) -> ModelReplied | NoReply:
    """The reply to the conversation so far. The prompt is rebuilt smaller up to `NARROWER` times if it does not fit."""
    question, role_model = talk.question, talk.connected.role_model
    rung = most = meter.narrowed.get(role_model.model, 0)
    for _ in range(1 + NARROWER):
        prompt = _prompt(talk, rung)
        if prompt is None:
            break
        tokens = prompt_tokens(prompt)
        if tokens + prompt.max_tokens > talk.window(most):
            rung += UNSAID
            continue
        try:
            return await meter.consult(
                talk.connected, question.role, question.name, prompt, question.documents, tokens, question.heard
            )
        except TooLong as error:
            rung = most = _rung_below(talk, rung, error.window)
            meter.narrowed[role_model.model] = most
        except ModelError:
            if (known := _recorded_narrower(meter, talk, rung)) is not None:
                return known
            raise
    return NoReply(
        Fallback.unusable, f"the prompt {question.name} does not fit the model's window of {talk.window(most)} tokens"
    )


def _rung_below(talk: _Talk[Any], rung: int, stated: int | None) -> int:
    if stated is None or not SMALLEST <= stated < talk.window(rung):
        return rung + UNSAID
    return next(below for below in range(rung + 1, rung + 1000) if talk.window(below) <= stated)


def _recorded_narrower(meter: Meter, talk: _Talk[Any], rung: int) -> ModelReplied | None:
    """The reply recorded for a smaller form of the same prompt: in a replay, the only one that exists."""
    while talk.window(rung := rung + 1) >= SMALLEST:
        prompt = _prompt(talk, rung)
        known = meter.recorded_reply(request_digest(talk.question.role, talk.question.name, prompt)) if prompt else None
        if known is not None:
            return known
    return None


def _prompt(talk: _Talk[Any], rung: int) -> Prompt | None:
    """The prompt built for the window at this rung; None if it does not fit."""
    window = talk.window(rung)
    for faults in (talk.faults, talk.faults[-1:]):
        bare = _assembled(talk, *prompts.parted(prompts.template(talk.question.name)), faults, window)
        room = window - bare.max_tokens - prompt_tokens(bare)
        if room > window // 8:
            break
    if room <= 0:
        return None
    return _assembled(talk, *prompts.halves(talk.question.name, talk.question.build_prompt(room)), faults, window)


def _assembled(talk: _Talk[Any], task: str, matter: str, faults: Sequence[_Fault], window: int) -> Prompt:
    role, name = talk.question.role.value, talk.question.name
    frame = talk.question.frame(talk.connected.role_model)
    first = f"Assay · {role}" if name == role else f"Assay · {role} · {name}"
    system = "\n\n".join(part for part in (f"{first}\n{task.strip()}".strip(), frame.words) if part)
    messages = [Message("system", system), Message("user", matter.strip())]
    again = "Try again." if frame.tools else "Reply again, with the whole JSON object and nothing else."
    for reply, error in faults:
        correction = f"That reply cannot be used: {error}\n{again}"
        messages += [Message("assistant", reply), Message("user", correction)]
    return Prompt(
        messages=tuple(messages),
        form=frame.form,
        schema=frame.schema,
        tools=frame.tools,
        max_tokens=max(1, min(talk.max_tokens, window // (2 if faults else REPLY_SHARE))),
        temperature=talk.temperature,
        pictures=talk.question.pictures,
    )


def _cut(words: str) -> str:
    words = words.strip()
    return words if len(words) <= SHOWN else words[:SHOWN] + " […]"
