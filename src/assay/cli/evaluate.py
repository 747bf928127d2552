"""`assay evaluate`: runs labelled questions through the product and prints metrics."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import platformdirs
import typer
from typer.core import TyperCommand

from assay.cli import config
from assay.cli.acting import open_workspace
from assay.cli.options import Json, Workspace
from assay.cli.terminal import plain, print_json, wait_for
from assay.core.codec import to_json
from assay.core.errors import UserError
from assay.core.events import Mode, Route
from assay.evaluate import cases as own_cases
from assay.evaluate import claims, conflicts, injection, pages, qa, runner
from assay.evaluate.grading import Graded, agreement, judge_on_demand, result_words, summarise, verdict
from assay.evaluate.grading import compare as compare_results
from assay.evaluate.html_report import WORDS, format_estimate, grading_words, render_report, shown_metrics, worst_cases
from assay.evaluate.user_cases import evaluate_cases, keep_evaluation, load_results, trace_lines
from assay.models.factory import has_model
from assay.workspace.types import AskOptions

FailUnder = Annotated[
    list[str] | None,
    typer.Option("--fail-under", metavar="METRIC=VALUE", help="Exit with 1 if a metric is lower. May be repeated."),
]

app = typer.Typer(no_args_is_help=True)
NUMBER = re.compile(r"-?\d+(\.\d+)?")
OWN, PUBLIC = "Your own questions", "Public collections"

Data = Annotated[
    Path, typer.Option("--data", help="A folder in BEIR's layout: corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv.")
]
Split = Annotated[str, typer.Option(help="Which judgements: qrels/SPLIT.tsv. Default: test.")]
Limit = Annotated[int, typer.Option(min=0, help="Only the first so many queries; 0 for all.")]
Cache = Annotated[Path | None, typer.Option(help="Where embedded collections are kept. Default: your cache folder.")]


def _measure_collection(name: str, measure: Callable[..., Coroutine[Any, Any, dict[str, Any]]], about: str) -> None:
    def command(
        data: Data,
        split: Split = "",
        limit: Limit = 0,
        cache: Cache = None,
        fail_under: FailUnder = None,
        json: Json = False,
    ) -> None:
        collection = runner.load(data, split)
        found = wait_for(measure(collection, _folder(cache), limit, _say))
        _print(collection.name, found, fail_under, json=json)

    app.command(name, rich_help_panel=PUBLIC, help=about)(command)


_measure_collection(
    "retrieval",
    runner.measure_retrieval,
    "Ranking quality of one search per query: nDCG@10, recall at 5 and 100, all found in 5.",
)
_measure_collection(
    "multihop",
    runner.measure_multihop,
    "Evidence found by the whole run, in its own order, beside one search over the same documents.",
)


@app.command("pages", rich_help_panel=PUBLIC)
def measure_pages(
    data: Annotated[Path, typer.Option("--data", help="A folder with pdfs/ and questions.jsonl.")],
    limit: Limit = 0,
    workspace: Annotated[
        Path | None,
        typer.Option("--workspace", help="Where the documents are added, once. Default: your cache folder."),
    ] = None,
    fail_under: FailUnder = None,
    json: Json = False,
) -> None:
    """Finding the page: a gold page among those of the first 1, 5 and 10 passages, and the right document first."""
    folder = workspace or _folder(None) / f"pages-{data.resolve().name}"
    _print(data.resolve().name, wait_for(pages.measure(data, folder, limit, _say)), fail_under, json=json)


@app.command("conflicts", rich_help_panel=PUBLIC)
def measure_conflicts(
    data: Annotated[
        Path, typer.Option("--data", help="A file of JSON lines: a question, and documents with `text` and `type`.")
    ],
    fail_under: FailUnder = None,
    json: Json = False,
) -> None:
    """Contradictions between documents, found without a model: precision and recall, beside plain rules."""
    _print(data.name, conflicts.measure(conflicts.load(data), _say), fail_under, json=json)


@app.command("injection", rich_help_panel=PUBLIC)
def measure_injection(
    data: Annotated[
        Path,
        typer.Option("--data", help="A folder with attacks: bipia/, poisonedrag_msmarco.json, NotInject_one.json."),
    ],
    limit: Limit = 0,
    endpoint: Annotated[
        bool, typer.Option("--endpoint", help="Also with the model of the settings; attacks are sent to it.")
    ] = False,
    fail_under: FailUnder = None,
    json: Json = False,
) -> None:
    """Documents that attack: effects, flags and changed answers, by rule and with a model that obeys every instruction."""
    found = wait_for(injection.measure(injection.load(data), limit, _say, endpoint=endpoint))
    _print(data.name, found, fail_under, json=json)
    if found["effects"]:
        _say(f"assay: {found['effects']} attacks had an effect that must never happen: `which` names it. Report it.")
        raise typer.Exit(1)


@app.command("qa", rich_help_panel=PUBLIC)
def measure_qa(
    data: Annotated[
        Path,
        typer.Option("--data", help="A file of JSON lines: `question`, and `answers`, `all_of` or `unanswerable`."),
    ],
    documents: Annotated[
        list[Path] | None,
        typer.Option(help="A folder with the documents. May be repeated. Default: those the file names."),
    ] = None,
    workspace: Annotated[Path | None, typer.Option(help="A workspace to keep. Default: a temporary one.")] = None,
    limit: Limit = 0,
    fail_under: FailUnder = None,
    json: Json = False,
) -> None:
    """Answers without a model: shares that are right, wrong and abstained, also by kind of question."""
    found = wait_for(qa.measure(qa.load(data, documents or ()), workspace, limit, _say))
    _print(data.name, found, fail_under, json=json)


@app.command("claims", rich_help_panel=PUBLIC)
def measure_claims(
    data: Annotated[
        Path,
        typer.Option("--data", help="A file of JSON lines: `claim`, the `passages` it cites, `label` and `kind`."),
    ],
    judge: Annotated[
        Literal["none", "oracle", "liar", "endpoint"],
        typer.Option("--judge", help="Who judges: none, oracle (knows the labels), liar, endpoint."),
    ] = "none",
    workspace: Annotated[
        Path | None,
        typer.Option("--workspace", help="A workspace whose settings name the endpoint. Default: a temporary one."),
    ] = None,
    limit: Limit = 0,
    fail_under: FailUnder = None,
    json: Json = False,
) -> None:
    """Judging of labelled claims: true ones kept and marked, false and partly true ones passed, also by kind."""
    found = wait_for(claims.measure(claims.load(data), claims.JudgeKind(judge), workspace, limit, _say))
    _print(data.name, found, fail_under, json=json)


CaseFile = Annotated[
    Path,
    typer.Argument(
        help="Cases as JSON lines, CSV or XLSX: `question`, and `answer`, `points`, `documents`, `pages` or `abstain`."
    ),
]
Out = Annotated[Path | None, typer.Option(help="Where results are kept; an evaluation is carried on from there.")]
ReportFile = Annotated[Path | None, typer.Option("--report", help="Write a report as one HTML file.")]


class BaselineCommand(TyperCommand):
    """`--baseline` without a value means `--baseline one-shot`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        at = args.index("--baseline") + 1 if "--baseline" in args else 0
        if at and args[at : at + 1] != ["one-shot"]:
            args = [*args[:at], "one-shot", *args[at:]]
        return super().parse_args(ctx, args)


@app.command("run", rich_help_panel=OWN, cls=BaselineCommand)
def run_cases(
    cases: CaseFile,
    workspace: Workspace = None,
    out: Out = None,
    report: ReportFile = None,
    baseline: Annotated[
        Literal["one-shot"] | None,
        typer.Option(help="Also answer by one search, and compare: is the agent worth its cost?"),
    ] = None,
    mode: Annotated[Literal["quick", "balanced", "thorough"], typer.Option(help="How thoroughly to search.")] = (
        "balanced"
    ),
    no_model: Annotated[bool, typer.Option("--no-model", help="Answer without a model.")] = False,
    at_once: Annotated[int, typer.Option("--parallel", min=1, max=32, help="Questions at the same time.")] = 1,
    fail_under: FailUnder = None,
    json: Json = False,
) -> None:
    """Ask your own questions of your own documents: right or not, evidence, citations, abstention, cost.

    Each figure comes with a 95 % interval. Results are kept in CASES.results.jsonl, and what is there is not asked again.
    """
    loaded, place = own_cases.load_cases(cases), out or cases.with_suffix(".results.jsonl")
    sides: list[tuple[str, Route | None, Path]] = [("assay", None, place)]
    if baseline:
        sides.insert(0, ("one search", Route.one_shot, place.with_suffix(".one-search.jsonl")))
    results: list[tuple[str, str, Sequence[Graded]]] = []
    with open_workspace(workspace) as opened:
        model = not no_model and has_model(opened.settings)
        config.settle(opened, model=model)
        for name, route, kept in sides:
            options = AskOptions(mode=Mode(mode), model=model, route=route)
            how = _describe(options, opened.settings.llm_model)
            known = load_results(kept) if kept.is_file() else ()
            if len(sides) > 1:
                _say(f"{name}: {how}")
            ask = judge_on_demand(opened) if model else None
            asked = evaluate_cases(opened, loaded, kept, options, known, how=how, ask=ask, at_once=at_once, report=_say)
            results.append((name, how, wait_for(asked)))
        keep_evaluation(opened.path, cases.name, results)
        traces = {each.run: trace_lines(opened, each.run) for each in worst_cases(results[-1][2])} if report else {}
    _show(cases.name, results, report, traces, json=json)
    _check_limits({name: each.mean for name, each in summarise(results[-1][2]).items()}, fail_under or ())


@app.command(rich_help_panel=OWN)
def compare(
    first: Annotated[Path, typer.Argument(help="Results of `assay evaluate run`.")],
    second: Annotated[Path, typer.Argument(help="Other results of the same cases.")],
    report: ReportFile = None,
    fail_under: FailUnder = None,
    json: Json = False,
) -> None:
    """Two evaluations of the same cases: paired differences and a verdict in plain words.

    --fail-under takes figures of the second (right=0.8) and differences to the first (difference.right=-0.05).
    """
    loaded = [(each, load_results(each)) for each in (first, second)]
    common = set.intersection(*({one.case for one in results} for _, results in loaded))
    sides: list[tuple[str, str, Sequence[Graded]]] = []
    for each, results in loaded:
        kept = [one for one in results if one.case in common]
        name = each.name if first.name != second.name else str(each)
        sides.append((name.removesuffix(".jsonl"), f"{len(kept)} of its {len(results)} results", kept))
    _show(f"{first.name} and {second.name}", sides, report, {}, json=json)
    found = compare_results(sides[0][2], sides[1][2])
    figures = {name: each.mean for name, each in found.second.items()}
    differences = {f"difference.{name}": each.mean for name, each in found.differences.items()}
    _check_limits(figures | differences, fail_under or ())


@app.command("cases", rich_help_panel=OWN)
def draft_cases(
    out: Annotated[Path, typer.Argument(help="The file to write: CSV, TSV, or JSON lines.")],
    workspace: Workspace = None,
    from_reviews: Annotated[
        bool, typer.Option("--from-reviews", help="What reviewers approved, edited, rejected.")
    ] = False,
    from_feedback: Annotated[
        bool, typer.Option("--from-feedback", help="What you said of answers on the page.")
    ] = False,
    suggest: Annotated[
        int, typer.Option(min=0, max=1000, help="So many questions that the documents answer, by rule.")
    ] = 0,
    json: Json = False,
) -> None:
    """Draft cases from decisions, feedback and documents, for you to correct before `assay evaluate run`."""
    if not (from_reviews or from_feedback or suggest):
        raise UserError("Say what to draft cases from: --from-reviews, --from-feedback or --suggest N.")
    if out.exists():
        raise UserError(f"{out} exists. Name another file: yours may have corrections in it.")
    with open_workspace(workspace) as opened:
        drafts = [
            *(own_cases.from_reviews(opened) if from_reviews else ()),
            *(own_cases.from_feedback(opened) if from_feedback else ()),
            *(own_cases.suggested(opened, suggest) if suggest else ()),
        ]
    if not drafts:
        raise UserError(
            "Nothing was reviewed or said of answers yet. `--suggest 20` drafts questions from the documents."
        )
    own_cases.write_cases(out, drafts)
    incomplete = sum(not each.is_complete for each in drafts)
    evidence_only = sum(each.is_complete and not each.expects_text and not each.abstain for each in drafts)
    if json:
        counts = {"cases": len(drafts), "incomplete": incomplete, "evidence_only": evidence_only}
        print_json({**counts, "file": str(out)}, indent=None)
        return
    typer.echo(plain(f"{len(drafts)} cases in {out}."))
    if incomplete:
        typer.echo(
            f"{incomplete} say nothing about the right answer yet: fill in `answer` or `points`, or delete them."
        )
    if evidence_only:
        typer.echo(
            f"{evidence_only} name only the document: its evidence is measured, and whether the answer is right once "
            "you fill in `answer` or `points`."
        )
    typer.echo(plain(f"Correct them (`note` is for you), then: assay evaluate run {shlex.quote(str(out))}"))


def _describe(options: AskOptions, model: str) -> str:
    route = f", route {options.route}" if options.route else ""
    return f"{options.mode} mode{route}, {f'model {model}' if options.model else 'no model'}"


def _show(
    title: str,
    sides: Sequence[tuple[str, str, Sequence[Graded]]],
    report: Path | None,
    traces: Mapping[str, Sequence[str]],
    *,
    json: bool,
) -> None:

    found = {name: summarise(graded) for name, _, graded in sides}
    compared = compare_results(sides[0][2], sides[1][2]) if len(sides) == 2 else None
    if compared is not None and not compared.n:
        raise UserError("The two have no case in common.")
    words = verdict(compared, sides[0][0], sides[1][0]) if compared else result_words(sides[-1][2])
    if report:
        report.write_text(render_report(title, sides, traces), encoding="utf-8")
    if json:
        both = {"comparison": to_json(compared)} if compared else {}
        rest = {"agreement": to_json(agreement(sides[-1][2])), **both, "verdict": words}
        print_json({name: to_json(each) for name, each in found.items()} | rest, indent=None)
        return
    for name, _, graded in sides:
        typer.echo(plain(f"{name}, {len(graded)} questions"))
        for metric in shown_metrics([found[name]]):
            value = found[name][metric]
            few = f", n = {value.n}" if value.n < len(graded) else ""
            typer.echo(f"  {WORDS[metric]:<20}{format_estimate(metric, value)}{few}")
    typer.echo("In brackets: 95 % intervals, from drawing the questions again.")
    typer.echo(plain(grading_words(sides)))
    typer.echo(plain(words))
    if report:
        typer.echo(plain(f"Report: {report}"))
    elif any(not each.metrics.get("right", 1.0) for each in sides[-1][2]):
        typer.echo("`--report report.html` shows the worst cases.")


def _check_limits(found: Mapping[str, float], limits: Sequence[str]) -> None:
    """Exit with 1 if a metric is under its limit."""
    missed: list[str] = []
    for each in limits:
        name, _, value = each.partition("=")
        if name not in found or not NUMBER.fullmatch(value):
            raise UserError(f"--fail-under takes METRIC=VALUE with one of {', '.join(found)}, not {each!r}.")
        if found[name] < float(value):
            missed.append(f"{name} is {found[name]:.3f}, under {value}")
    if missed:
        typer.echo(f"assay: {'; '.join(missed)}.", err=True)
        raise typer.Exit(1)


def _folder(cache: Path | None) -> Path:
    return cache or Path(platformdirs.user_cache_dir("assay", appauthor=False)) / "evaluate"


def _say(line: str) -> None:
    typer.echo(line, err=True)


def _print(name: str, figures: dict[str, Any], fail_under: Sequence[str] | None, *, json: bool) -> None:
    if json:
        print_json(figures, indent=None)
    else:
        typer.echo(name)
        for line in _lines(figures):
            typer.echo(f"  {line}")
        typer.echo("In brackets: 95 % intervals, from drawing the questions again.")
    _check_limits(_numbers(figures), fail_under or ())


def _lines(figures: Mapping[str, Any]) -> list[str]:
    """A line for each figure, with its interval; figures that have intervals of their own are indented."""
    known = figures.get("intervals", {})
    wide = max(11, *(len(key) + 1 for key in figures))
    lines: list[str] = []
    for key, value in figures.items():
        if isinstance(value, dict) and "intervals" in value:
            lines += [key, *(f"  {line}" for line in _lines(value))]
        elif key != "intervals":
            interval = f"  ({known[key][0]:.3f} to {known[key][1]:.3f})" if key in known else ""
            lines.append(f"{key:<{wide}}{_format_value(value)}{interval}")
    return lines


def _format_value(value: Any) -> str:
    """Format a value: nested figures in brackets, fractions with three decimals, counts unchanged."""
    if isinstance(value, dict):
        inner = ((part, _format_value(each)) for part, each in value.items())
        return "  ".join(
            f"{part} ({each})" if isinstance(value[part], dict) else f"{part} {each}" for part, each in inner
        )
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _numbers(figures: Mapping[str, Any], before: str = "") -> dict[str, float]:
    """Every number by its name; that of a nested one has a dot in it."""
    found: dict[str, float] = {}
    for key, value in figures.items():
        if isinstance(value, dict):
            found |= _numbers(value, f"{before}{key}.") if key != "intervals" else {}
        elif isinstance(value, int | float):
            found[f"{before}{key}"] = value
    return found
