"""`assay evaluate`: runs labelled questions through the product and prints metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from assay.cli.options import Json, print_json, wait_for

app = typer.Typer(help="Measure on labelled questions.", no_args_is_help=True)

Data = Annotated[
    Path, typer.Option("--data", help="A folder in BEIR's layout: corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv.")
]
Split = Annotated[str, typer.Option(help="Which judgements: qrels/SPLIT.tsv. Default: test.")]
Limit = Annotated[int, typer.Option(min=0, help="Only the first so many queries; 0 for all.")]
Cache = Annotated[Path | None, typer.Option(help="Where embedded collections are kept. Default: your cache folder.")]


@app.command("retrieval")
def retrieval(data: Data, split: Split = "", limit: Limit = 0, cache: Cache = None, json: Json = False) -> None:
    """Ranking quality of one search per query: nDCG@10, recall at 5 and 100, all found in 5."""
    from assay.evaluate.beir import load
    from assay.evaluate.runner import measure_retrieval as measure

    collection = load(data, split)
    _print(collection.name, wait_for(measure(collection, _folder(cache), limit, _say)), json=json)


@app.command("multihop")
def multihop(data: Data, split: Split = "", limit: Limit = 0, cache: Cache = None, json: Json = False) -> None:
    """Evidence found by the whole run, in its own order, beside one search over the same documents."""
    from assay.evaluate.beir import load
    from assay.evaluate.runner import measure_multihop as measure

    collection = load(data, split)
    _print(collection.name, wait_for(measure(collection, _folder(cache), limit, _say)), json=json)


PageData = Annotated[Path, typer.Option("--data", help="A folder with pdfs/ and questions.jsonl.")]
KeptWorkspace = Annotated[
    Path | None, typer.Option("--workspace", help="Where the documents are added, once. Default: your cache folder.")
]


@app.command()
def pages(data: PageData, limit: Limit = 0, workspace: KeptWorkspace = None, json: Json = False) -> None:
    """Finding the page: a gold page among those of the first 1, 5 and 10 passages, and the right document first."""
    from assay.evaluate.pages import measure

    folder = workspace or _folder(None) / f"pages-{data.resolve().name}"
    _print(data.resolve().name, wait_for(measure(data, folder, limit, _say)), json=json)


Cases = Annotated[
    Path, typer.Option("--data", help="A file of JSON lines: a question, and documents with `text` and `type`.")
]


@app.command()
def conflicts(data: Cases, json: Json = False) -> None:
    """Contradictions between documents, found without a model: precision and recall, beside plain rules."""
    from assay.evaluate.conflicts import load, measure

    _print(data.name, measure(load(data), _say), json=json)


Attacks = Annotated[
    Path, typer.Option("--data", help="A folder with attacks: bipia/, poisonedrag_msmarco.json, NotInject_one.json.")
]
Endpoint = Annotated[
    bool, typer.Option("--endpoint", help="Also with the model of the settings; attacks are sent to it.")
]


@app.command()
def injection(data: Attacks, limit: Limit = 0, endpoint: Endpoint = False, json: Json = False) -> None:
    """Documents that attack: effects, flags and changed answers, by rule and with a model that obeys every instruction."""
    from assay.evaluate.injection import load, measure

    _print(data.name, wait_for(measure(load(data), limit, _say, endpoint=endpoint)), json=json)


Questions = Annotated[
    Path, typer.Option("--data", help="A file of JSON lines: `question`, and `answers`, `all_of` or `unanswerable`.")
]
Documents = Annotated[
    list[Path] | None,
    typer.Option(help="A folder with the documents. May be repeated. Default: those the file names."),
]
QaWorkspace = Annotated[Path | None, typer.Option(help="A workspace to keep. Default: a temporary one.")]


@app.command()
def qa(
    data: Questions,
    documents: Documents = None,
    workspace: QaWorkspace = None,
    limit: Limit = 0,
    json: Json = False,
) -> None:
    """Answers without a model: shares that are right, wrong and abstained, also by kind of question."""
    from assay.evaluate.qa import load, measure

    _print(data.name, wait_for(measure(load(data, documents or ()), workspace, limit, _say)), json=json)


Claims = Annotated[
    Path, typer.Option("--data", help="A file of JSON lines: `claim`, the `passages` it cites, `label` and `kind`.")
]
JudgeName = Annotated[
    Literal["none", "oracle", "liar", "endpoint"],
    typer.Option("--judge", help="Who judges: none, oracle (knows the labels), liar, endpoint."),
]
JudgeWorkspace = Annotated[
    Path | None,
    typer.Option("--workspace", help="A workspace whose settings name the endpoint. Default: a temporary one."),
]


@app.command()
def claims(
    data: Claims,
    judge: JudgeName = "none",
    workspace: JudgeWorkspace = None,
    limit: Limit = 0,
    json: Json = False,
) -> None:
    """Judging of labelled claims: true ones kept and marked, false and partly true ones passed, also by kind."""
    from assay.evaluate.claims import JudgeKind, load, measure

    _print(data.name, wait_for(measure(load(data), JudgeKind(judge), workspace, limit, _say)), json=json)


def _folder(cache: Path | None) -> Path:
    import platformdirs

    return cache or Path(platformdirs.user_cache_dir("assay", appauthor=False)) / "evaluate"


def _say(line: str) -> None:
    typer.echo(line, err=True)


def _print(name: str, figures: dict[str, Any], *, json: bool) -> None:
    if json:
        print_json(figures, indent=None)
        return
    typer.echo(name)
    wide = max(11, *(len(key) + 1 for key in figures))
    for key, value in figures.items():
        typer.echo(f"  {key:<{wide}}{_format_value(value)}")


def _format_value(value: Any) -> str:
    """Format a value: nested figures in brackets, fractions with three decimals, counts unchanged."""
    if isinstance(value, dict):
        inner = ((part, _format_value(each)) for part, each in value.items())
        return "  ".join(
            f"{part} ({each})" if isinstance(value[part], dict) else f"{part} {each}" for part, each in inner
        )
    return f"{value:.3f}" if isinstance(value, float) else str(value)
