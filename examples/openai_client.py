"""Ask over HTTP with the official `openai` package, as any chat front end would: a stream, and citations as data.

    python examples/openai_client.py

Add some documents first, for example with examples/add_and_search.py. A server is started for the example and ended with it.
"""

import re
import subprocess
import sys

from openai import OpenAI


def main() -> None:
    command = [sys.executable, "-m", "assay.cli.main", "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            found = next(match for line in server.stderr if (match := re.search(r"(http://\S+/)\?token=(\S+)", line)))
            ask(OpenAI(base_url=f"{found[1]}v1", api_key=found[2]))
        finally:
            server.terminate()


def ask(client: OpenAI) -> None:
    print(", ".join(model.id for model in client.models.list()))
    question = "How long is raw telemetry kept?"
    for piece in client.chat.completions.create(
        model="assay-quick", messages=[{"role": "user", "content": question}], stream=True
    ):
        delta = piece.choices[0].delta
        print(delta.content or "", end="")
        for note in (delta.model_extra or {}).get("annotations", []):
            print("\n" + note["url_citation"]["title"], note["url_citation"]["url"], end="")
    print()


if __name__ == "__main__":
    main()
